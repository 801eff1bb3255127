"""The provider for local models: a model of transformers in this process."""

from judge.providers.transformers.provider import LocalProvider

__all__ = ["LocalProvider"]
