"""Group commit: many replies share a write, and a write that fails is nobody's secret."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from judge.core.errors import StorageError
from judge.execution.group_commit import GroupCommit


class Disk:
    """Takes what was put; fails while `full`. `writes` has each write's share."""

    def __init__(self) -> None:
        self.put: list[int] = []
        self.writes: list[list[int]] = []
        self.full = False

    def write(self) -> None:
        if self.full:
            raise StorageError("disk full")
        self.writes.append(self.put)
        self.put = []


async def keep(disk: Disk, commit: GroupCommit, number: int) -> list[int]:
    """What is written by the time that this one is said to be."""
    disk.put.append(number)
    await commit.committed()
    return [one for share in disk.writes for one in share]


def test_what_gathers_in_one_turn_is_written_together_and_before_anybody_goes_on() -> None:
    disk = Disk()
    commit = GroupCommit(disk.write)

    async def go() -> list[list[int]]:
        found = await asyncio.gather(*(keep(disk, commit, n) for n in range(5)))
        return [*found, await keep(disk, commit, 5)]

    *together, later = asyncio.run(go())
    assert together == [[0, 1, 2, 3, 4]] * 5
    assert later == [0, 1, 2, 3, 4, 5]
    assert disk.writes == [[0, 1, 2, 3, 4], [5]]


def test_everybody_who_waits_hears_of_a_write_that_failed_and_so_does_the_next() -> None:
    disk = Disk()
    commit = GroupCommit(disk.write)

    async def go() -> list[object]:
        disk.full = True
        found = await asyncio.gather(
            *(keep(disk, commit, n) for n in range(3)), return_exceptions=True
        )
        with pytest.raises(StorageError):
            commit.schedule()
        disk.full = False
        commit.flush()
        return [*found, *await keep(disk, commit, 3)]

    *failed, a, b, c, d = asyncio.run(go())
    assert [type(one) for one in failed] == [StorageError] * 3
    assert [a, b, c, d] == [0, 1, 2, 3]


def test_one_who_stops_waiting_stops_nobody_else() -> None:
    disk = Disk()
    commit = GroupCommit(disk.write)

    async def go() -> list[object]:
        tasks = [asyncio.create_task(keep(disk, commit, n)) for n in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    cancelled, kept = asyncio.run(go())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert kept == [0, 1]


def test_writing_at_once_is_enough_for_those_who_wait() -> None:
    disk = Disk()
    commit = GroupCommit(disk.write)

    async def go() -> list[int]:
        task = asyncio.create_task(keep(disk, commit, 7))
        await asyncio.sleep(0)
        commit.flush()
        return await task

    assert asyncio.run(go()) == [7]
    assert disk.writes == [[7]]


@pytest.mark.parametrize("write_seconds", [0.0, 0.0002, 0.08])
def test_a_reply_is_written_within_10_ms_of_its_arrival_or_of_a_slow_write(
    write_seconds: float, in_time: Callable[[Coroutine[Any, Any, Any]], Any]
) -> None:
    waits: list[float] = []
    writes = 0

    async def arrive(commit: GroupCommit, number: int) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0.0007 * number)
        arrived = loop.time()
        await commit.committed()
        waits.append(loop.time() - arrived - 2 * write_seconds)  # a write under way, then its own

    async def go() -> None:
        def write() -> None:
            nonlocal writes
            writes += 1
            asyncio.get_running_loop().now += write_seconds  # type: ignore[attr-defined]  (the clock of `in_time`)

        commit = GroupCommit(write)
        await asyncio.gather(*(arrive(commit, number) for number in range(500)))

    in_time(go())
    assert len(waits) == 500
    assert max(waits) <= 0.01
    assert writes <= 0.0007 * 500 / 0.005 + 1  # many replies share a write
