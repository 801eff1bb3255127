"""Models are resolved, checked, loaded and run for the metrics that use them."""

from __future__ import annotations

import json
import logging
import os
import types
import warnings
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core import huggingface
from judge.core.errors import ConfigError, MissingExtra

INDEX = json.dumps(
    {
        "weight_map": {
            "a": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
        }
    }
)
WHOLE = {
    "config.json": '{"num_hidden_layers": 4}',
    "tokenizer.json": "{}",
    "model.safetensors": "weights",
}
PARTS = {"config.json": "{}", "vocab.txt": "a", "model.safetensors.index.json": INDEX}
ASKERS = [{"who": "bertscore", "role": "model"}, {"who": "qags", "role": "reader"}]


def filled(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")
    return folder


def resolve_model(
    model: str | Path, cache: Path | None = None, who: str = "qags", role: str = "reader"
) -> huggingface.ModelFiles:
    return huggingface.resolve(str(model), who=who, role=role, cache=cache)


class Online:
    """A fake hub. A download writes `files` to `folder`, its cache, or raises `down`."""

    def __init__(self, folder: Path, files: dict[str, str], down: Exception | None = None) -> None:
        self.folder, self.files, self.down = folder, files, down
        self.downloads = 0

    def snapshot_download(
        self, name: str, *, allow_patterns: list[str], local_files_only: bool = False
    ) -> str:
        assert allow_patterns == list(huggingface.PATTERNS)
        if local_files_only:
            if not self.folder.exists():
                raise OSError("nothing here")
            return str(self.folder)
        self.downloads += 1
        if self.down:
            raise self.down
        return str(filled(self.folder, self.files))


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Online:
    hub = Online(tmp_path / "snapshot", WHOLE)
    parts = {"huggingface_hub": hub, "transformers.utils.logging": None}
    monkeypatch.setattr(
        huggingface, "import_optional", lambda module, who, extra=None: parts[module]
    )
    monkeypatch.setattr(huggingface, "silenced", lambda: pytest.MonkeyPatch().context())
    return hub


def test_a_folder_is_signed_by_its_name_and_digest(tmp_path: Path) -> None:
    files = resolve_model(filled(tmp_path / "my|model", WHOLE))
    assert files.signed == f"my_model@{files.digest[:8]}"
    assert files.config() == {"num_hidden_layers": 4}


def test_digest_changes_only_with_files_that_are_read(tmp_path: Path) -> None:
    folder = filled(tmp_path / "model", WHOLE | {"README.md": "about"})
    before = resolve_model(folder).digest
    filled(folder, {"README.md": "more about", "pytorch_model.bin": "pickled"})
    assert resolve_model(folder).digest == before
    for name in (
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "generation_config.json",
        "spiece.model",
    ):
        filled(folder, {name: '{"changed": true}'})
        assert resolve_model(folder).digest != before
        before = resolve_model(folder).digest


def test_the_digest_is_remembered_until_a_file_changes(tmp_path: Path) -> None:
    folder, cache = filled(tmp_path / "model", WHOLE), tmp_path / "cache"
    before = resolve_model(folder, cache).digest
    weights = folder / "model.safetensors"
    times = weights.stat().st_atime_ns, weights.stat().st_mtime_ns
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, ns=times)
    assert resolve_model(folder, cache).digest == before, (
        "the file was read although it seems the same"
    )
    assert resolve_model(folder).digest != before
    os.utime(weights, ns=(times[0], times[1] + 1))
    assert resolve_model(folder, cache).digest != before
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert not any(str(folder) in f"{path.name}{path.read_text()}" for path in files), (
        "a path is the user's business"
    )


def test_a_damaged_or_missing_digest_cache_is_rebuilt(tmp_path: Path) -> None:
    folder, cache = filled(tmp_path / "model", WHOLE), tmp_path / "cache"
    digest = resolve_model(folder, cache).digest
    for damage in (b"", b"\xff" * 64, digest.encode()[:60]):
        for path in (cache / "models").iterdir():
            path.write_bytes(damage)
        assert resolve_model(folder, cache).digest == digest
    (tmp_path / "file").write_text("in the way")
    assert resolve_model(folder, tmp_path / "file").digest == digest


@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        ({**WHOLE, "config.json": None}, "lacks config.json: get"),
        ({**WHOLE, "tokenizer.json": None}, "lacks tokenizer.json: get"),
        (
            {**WHOLE, "model.safetensors": None, "pytorch_model.bin": "pickled"},
            "lacks model.safetensors: .*another form",
        ),
        (
            {**WHOLE, "model.safetensors": None, "model.fp16.safetensors": "half"},
            "lacks model.safetensors: get",
        ),
        ({}, "lacks config.json, tokenizer.json and 1 more"),
        (
            {**PARTS, "model-00001-of-00002.safetensors": "a"},
            "lacks model-00002-of-00002.safetensors: get",
        ),
        ({**PARTS, "model.safetensors.index.json": "{"}, "lacks model.safetensors.index.json: get"),
        (
            {**PARTS, "model.safetensors.index.json": "[]"},
            "lacks model.safetensors.index.json: get",
        ),
    ],
)
def test_an_incomplete_model_folder_names_the_missing_files(
    tmp_path: Path, asker: dict[str, str], files: dict[str, str | None], lacks: str
) -> None:
    folder = filled(
        tmp_path / "part", {name: content for name, content in files.items() if content is not None}
    )
    with pytest.raises(
        ConfigError, match=rf"^{asker['who']}: {asker['role']} part \(.*part\): {lacks}"
    ):
        resolve_model(folder, **asker)


def test_weights_in_several_files_are_all_part_of_the_digest(tmp_path: Path) -> None:
    shards = {f"model-0000{n}-of-00002.safetensors": "x" for n in (1, 2)}
    folder = filled(tmp_path / "parts", PARTS | shards)
    before = resolve_model(folder).digest
    filled(folder, {"model-00002-of-00002.safetensors": "y"})
    assert resolve_model(folder).digest != before


def test_a_model_in_the_hub_cache_is_not_downloaded(online: Online) -> None:
    filled(online.folder, WHOLE)
    assert resolve_model("someone/reads").signed.startswith("someone/reads@")
    assert online.downloads == 0


@pytest.mark.parametrize(
    "begun", [{}, {"config.json": "{}"}, {**PARTS, "model-00001-of-00002.safetensors": "a"}]
)
def test_files_missing_from_the_hub_cache_are_downloaded(
    online: Online, begun: dict[str, str]
) -> None:
    if begun:
        filled(online.folder, begun)
    online.files = WHOLE if "vocab.txt" not in begun else {"model-00002-of-00002.safetensors": "b"}
    assert resolve_model("someone/reads").folder == online.folder
    assert online.downloads == 1


def test_files_missing_on_the_hub_are_an_error(online: Online) -> None:
    online.files = {"config.json": "{}", "vocab.txt": "a"}
    with pytest.raises(
        ConfigError, match=r"^qags: reader someone/reads \(.*\): lacks model\.safetensors: "
    ):
        resolve_model("someone/reads")


class Cut(Exception):
    """An exception of an HTTP library."""


@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize(
    "error", [OSError("\n cut off\nat once"), ValueError("cut off"), Cut("cut off")]
)
def test_an_unreachable_hub_names_the_variable_to_set(
    online: Online, asker: dict[str, str], error: Exception
) -> None:
    online.down = error
    begins = rf"^{asker['who']}: {asker['role']} 'nobody/nothing' is not a local folder"
    with pytest.raises(ConfigError, match=rf"{begins}.*\(cut off\).*HF_HUB_CACHE.*HF_ENDPOINT"):
        resolve_model("nobody/nothing", **asker)


@pytest.mark.parametrize("content", ["{", "[]", "3"])
def test_a_damaged_configuration_names_its_file(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match=r"^qags: reader model \(.*\): config\.json"):
        resolve_model(filled(tmp_path / "model", WHOLE | {"config.json": content}))


def test_a_missing_package_names_the_metric_and_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(package: str) -> str:
        raise PackageNotFoundError(package)

    with pytest.raises(
        MissingExtra, match=r"^qags needs.* nowhere: pip install 'textjudge\[qags\]'"
    ):
        huggingface.import_optional("nowhere.to.be.found", "qags")
    monkeypatch.setattr(huggingface, "installed_version", absent)
    huggingface.version.cache_clear()
    with pytest.raises(
        MissingExtra, match=r"^nli needs.* nothing: pip install 'textjudge\[qags\]'"
    ):
        huggingface.version("nothing", "nli", "qags")


@given(st.lists(st.integers(1, 60), max_size=50), st.integers(1, 200), st.booleans())
def test_batches_contain_every_text_once_with_little_padding(
    lengths: list[int], tokens: int, mixed: bool
) -> None:
    batches = huggingface.batches(lengths, tokens, mixed=mixed)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert mixed or all(lengths[index] >= longest - longest // 8 for index in batch)


def test_mixed_batches_are_as_few_as_possible() -> None:
    assert huggingface.batches([8, 4, 2, 1], 32, mixed=True) == [[0, 1, 2, 3]]
    assert huggingface.batches([8, 4, 2, 1], 32) == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    ("longest", "config", "usual", "limit"),
    [
        (10**30, {"max_position_embeddings": 48}, 512, 48),
        (24, {"max_position_embeddings": 48}, 512, 24),
        (24, {}, 512, 24),
        (0, {"max_position_embeddings": 48}, 512, 48),
        (10**30, {}, 512, 512),
        (10**30, {}, 128, 128),
        (10**30, {"n_positions": 100}, 512, 100),
        (
            512,
            {"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1},
            512,
            512,
        ),
    ],
)
def test_window_is_the_smaller_limit_of_tokenizer_and_network(
    longest: int, config: dict[str, Any], usual: int, limit: int
) -> None:
    tokenizer = types.SimpleNamespace(model_max_length=longest)
    model_config = types.SimpleNamespace(**({"model_type": "bert", "pad_token_id": 0} | config))
    assert huggingface.limit(tokenizer, model_config, usual) == limit


@pytest.fixture(scope="session")
def bert(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = tiny.word_pieces(folder, [" ".join(map(str, range(40)))])
    return str(
        tiny.saved(folder, tiny.made("Bert", "Model", 1, vocab_size=len(tokenizer)), tokenizer)
    )


@pytest.mark.torch
def test_weights_in_several_files_are_loaded(tiny: Any, bert: str, tmp_path: Path) -> None:
    tokenizer, network = huggingface.load(resolve_model(bert), "AutoModel")
    parts = resolve_model(tiny.saved(tmp_path, network, tokenizer, max_shard_size="20KB"))
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    reloaded = dict(huggingface.load(parts, "AutoModel")[1].named_parameters())
    assert all((value == reloaded[name]).all() for name, value in network.named_parameters())


@pytest.mark.torch
@pytest.mark.parametrize("asker", ASKERS)
def test_a_tokenizer_of_another_model_is_an_error(
    tiny: Any, bert: str, tmp_path: Path, asker: dict[str, str]
) -> None:
    folder = tiny.copied(bert, tmp_path / "bare")
    for name in ("tokenizer.json", "vocab.txt"):
        Path(folder, name).unlink()
    with pytest.raises(ConfigError, match=rf"^{asker['who']}: .*5 tokens, .*45"):
        huggingface.load(resolve_model(folder, **asker), "AutoModel")


@pytest.mark.torch
def test_missing_weights_are_named_unless_they_are_unused(
    tiny: Any, bert: str, tmp_path: Path
) -> None:
    folder = tiny.copied(bert, tmp_path)
    network = huggingface.load(resolve_model(bert), "AutoModel")[1]
    network.pooler = None
    tiny.saved(tmp_path, network)
    with pytest.raises(ConfigError, match=r"^qags: reader .*lack pooler\.dense\.bias"):
        huggingface.load(resolve_model(folder), "AutoModel")
    huggingface.load(
        resolve_model(folder), "AutoModel", spare=lambda name: name.startswith("pooler")
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("file", "part"), [("tokenizer.json", "tokenizer"), ("model.safetensors", "network")]
)
def test_a_damaged_file_is_an_error_in_one_line(
    tiny: Any, bert: str, tmp_path: Path, file: str, part: str
) -> None:
    folder = tiny.copied(bert, tmp_path)
    Path(folder, file).write_text("{ damaged")
    with pytest.raises(ConfigError, match=rf"^qags: reader [^\n]*: its {part} cannot [^\n]+\Z"):
        huggingface.load(resolve_model(folder), "AutoModel")


@pytest.mark.torch
@pytest.mark.parametrize("who", ["bertscore", "qags"])
@pytest.mark.parametrize("name", ["nonsense", "cuda:99", "meta"])
def test_an_unusable_device_is_an_error(who: str, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{who}: device '{name}' cannot"):
        huggingface.device(name, who=who)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            MemoryError(),
            "64 tokens .*batch_tokens .*device to cpu",
        ),
        (RuntimeError("CUDA out of memory."), "64 tokens .*memory"),
        (
            IndexError("index out of range"),
            r"index out of range.*another model",
        ),
        (ConfigError("already said"), "^already said"),
    ],
)
def test_errors_of_a_network_name_the_option_to_set(
    bert: str, error: Exception, message: str
) -> None:
    with (
        pytest.raises(ConfigError, match=message),
        huggingface.translated_errors(resolve_model(bert), 64),
    ):
        raise error


@pytest.mark.torch
def test_output_of_other_packages_is_silenced_only_inside_the_block(
    capfd: pytest.CaptureFixture[str],
) -> None:
    from transformers.utils import logging as bars

    before = logging.root.manager.disable, bars.is_progress_bar_enabled()
    with huggingface.silenced():
        warnings.warn("something", stacklevel=1)
        logging.getLogger("transformers").warning("something")
        assert not bars.is_progress_bar_enabled()
    assert (logging.root.manager.disable, bars.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


class Large:
    """A network that fits on no device."""

    def to(self, device: object) -> None:
        raise RuntimeError("CUDA out of memory.")


def test_a_network_too_large_for_the_device_is_an_error(tmp_path: Path) -> None:
    files = resolve_model(filled(tmp_path / "large", WHOLE))
    with pytest.raises(
        ConfigError,
        match=r"^qags: reader large .*cuda:0 \(CUDA out of memory\.\): .*set device",
    ):
        huggingface.to_device(files, Large(), "cuda:0")
