"""Pay each try of a request from the budget."""

from __future__ import annotations

from judge.core.records import Request, Response
from judge.execution.budget import BudgetLedger
from judge.execution.layers import Layer, RunStopped


class Budgeted:
    """Reserves the maximum cost of a request before it is sent, and commits the real cost.

    Raises BudgetReached if the budget has not enough left.
    """

    def __init__(self, following: Layer, ledger: BudgetLedger) -> None:
        self._following = following
        self._ledger = ledger

    async def ask(self, request: Request) -> Response:
        reserved = await self._ledger.reserve(request)
        try:
            response = await self._following.ask(request)
        except RunStopped:
            # The request was not sent.
            self._ledger.release(reserved)
            raise
        except BaseException as error:
            self._ledger.commit_unknown(reserved, error)
            raise
        self._ledger.commit(reserved, request, response.usage)
        return response
