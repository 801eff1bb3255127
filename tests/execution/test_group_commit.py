"""Group commit: many replies share a write, and a write that fails is nobody's secret."""

from __future__ import annotations

import asyncio

import pytest

from judge.core.errors import StorageError
from judge.execution.leases import GroupCommit


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
        found = await asyncio.gather(*(keep(disk, commit, n) for n in range(3)), return_exceptions=True)
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


def test_a_write_that_took_long_is_soon_followed_by_another() -> None:
    async def go() -> float:
        loop = asyncio.get_running_loop()
        clock, late = loop.time, 0.0

        def hang() -> None:
            nonlocal late
            late += 30.0

        loop.time = lambda: clock() + late  # type: ignore[method-assign]
        commit = GroupCommit(hang)
        await commit.committed()
        return commit._not_before - loop.time()

    assert 0.0 < asyncio.run(go()) <= 0.5
