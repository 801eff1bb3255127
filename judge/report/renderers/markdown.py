"""Render a result as Markdown for a comment on a pull request: the numbers in the open, their making folded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from judge.core.format import one_line, plural
from judge.report.views import people as validation
from judge.report.views.columns import ALPHA, ARROWS
from judge.report.views.leaderboard_old import Cell, Leaderboard, build_leaderboard, verdict
from judge.report.views.people import LEVEL
from judge.report.views.ranking_old import RankingView, build_ranking
from judge.report.views.score_drivers import build_judge_drivers
from judge.results.result import Result

LIMIT = 60_000
"""Characters at most, whatever the size of the run: a comment on GitHub holds 65,536."""
_OPEN, _FAILED = 45_000, 12_000  # of these for what is not folded, and of those for the failures
_TABLE = 25_000  # for one table, so that there is room for the next one
_MOST_COLUMNS = 24  # of a table
_NAME, _TEXT = 80, 3_000  # characters of a name, of a paragraph
_REST = "The rest is in report.html."

# A backslash makes any ASCII punctuation literal (CommonMark 2.4); these are the ones that can mean something here.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>&$]|(?<=:)/(?=/)|(?<=(?i:www))\.)")
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:[\s-]|$)|=))")  # a list, a rule, a heading's line
# GitHub links people, addresses and issues after Markdown is done: only a character without width keeps it from that.
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that may lose columns and rows. `right` are the columns of numbers, all but the first if it is None."""

    heads: Sequence[str]
    rows: Iterable[Sequence[str]]
    right: Sequence[int] | None = None

    def within(self, room: int) -> str:
        """The table in at most `room` characters, with a note on what it lacks."""
        heads = self.heads[:_MOST_COLUMNS]
        numbers = set(range(1, len(heads)) if self.right is None else self.right)
        rule = ["---:" if place in numbers else "---" for place in range(len(heads))]
        lines = [
            "| " + " | ".join(cells) + " |" for cells in (heads, rule, *(row[:_MOST_COLUMNS] for row in self.rows))
        ]
        ends = accumulate(len(text) + 1 for text in lines)
        n_lines = sum(end < min(room, _TABLE) - 100 for end in ends)  # 100 for the note
        lost = [(len(self.heads) - len(heads), "more column"), (len(lines) - n_lines, "more row")]
        lacks = " and ".join(plural(n, thing) for n, thing in lost if n)
        return "\n".join(lines[:n_lines]) + (f"\n\n… {lacks}. {_REST}" if lacks else "")


def render(result: Result) -> str:
    """GitHub-flavoured Markdown of at most `LIMIT` characters: the numbers and what failed, then, folded away, how
    they came to be.
    """
    view = build_ranking(result) if result.rankings else build_leaderboard(result)
    blocks: list[str | _Table] = [f"## {escape(view.about.title, 200)}"]
    if answer := verdict(result):
        blocks.append(f"**{escape(answer)}**")
    blocks += [f"> {escape(text, 500)}" for text in view.about.all_banners[:20]]
    if isinstance(view, RankingView):
        for contest in view.contests:
            columns = [[" ".join(cell).rstrip() for cell in cells] for cells in contest.columns.values()]
            rows = zip(map(_name, contest.systems), *columns, strict=True)
            blocks += [f"### {escape(contest.label, 200)}", _Table(("system", *contest.columns), rows)]
            blocks.append(escape(" ".join(contest.sentences)))
            if contest.ranking.note:
                blocks.append(escape(contest.ranking.note))
    else:
        blocks += _means_blocks(view)
    blocks += _people_blocks(result)
    for block in validation.blocks(result.calibrated):
        blocks.append(f"### {validation.TITLE}: {_name(block.name)}")
        for grid in block.grids:
            grid_rows = [[_name(row[0][0]), *(" ".join(cell).rstrip() for cell in row[1:])] for row in grid.rows]
            blocks.append(_Table(grid.heads, grid_rows))
        blocks.append(escape(" ".join(block.sentences)))
    if result.calibrated:
        blocks.append(escape(validation.calibration_note(result.calibrated)))
    failures = [
        (
            _name(f.stage),
            _name(f.error),
            f"{f.count:,}",
            escape(", ".join(f.columns), 200),
            _code(one_line(f.example, 200)).replace("|", "\\|"),  # a table needs this even in code (GFM, 4.10)
        )
        for f in view.about.failures
    ]
    failure_table = _Table(("stage", "error", "count", "columns", "for example"), failures, right=[2])
    failed = _fit(["### Failures", failure_table] if failures else [], _FAILED)
    page = _fit(blocks, _OPEN - len(failed) - 1) + (f"\n{failed}" if failed else "")
    for title, parts in _folded(result, view):
        head, foot = f"\n<details>\n<summary>{title}</summary>\n\n", "\n</details>\n"
        if (room := LIMIT - len(page) - len(head) - len(foot)) > 200:
            page += head + _fit(parts, room) + foot
    return page


def escape(text: str, limit: int = _TEXT) -> str:
    """The text on one line, with nothing in it that Markdown, HTML or GitHub would read as markup, link or mention."""
    literal = _BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\1", one_line(text, limit)))
    return _LINKED.sub(r"\g<0>&#8203;", literal)


def summary(text: str, limit: int = _NAME) -> str:
    """The text on one line for `<summary>`, in which Markdown has no say: HTML that links to nothing."""
    literal = html.escape(one_line(text, limit), quote=False)
    return _ADDRESS.sub(r"\g<0>&#8203;", _LINKED.sub(r"\g<0>&#8203;", literal))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """A table of cells that are Markdown: the first columns are names, the others numbers."""
    rule = ["---"] * names + ["---:"] * (len(heads) - names)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def page_of(blocks: Iterable[str], limit: int, rest: str) -> str:
    """The blocks below each other, in about `limit` characters: from the first that does not fit on only `rest`."""
    page = ""
    for block in blocks:
        if len(page) + len(block) > limit:
            return page + rest
        page += f"{block}\n\n"
    return page.rstrip("\n") + "\n"


def folded(title: str, text: str) -> str:
    """A text below a title that opens it."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def _fit(blocks: Iterable[str | _Table], room: int) -> str:
    """The blocks in at most `room` characters: a table loses rows, and a block that does not fit ends the text."""
    page = ""
    for block in blocks:
        gap = "\n" if page else ""
        remaining = room - len(page) - len(gap) - len(_REST) - 3
        text = block.within(remaining) if isinstance(block, _Table) else block
        if len(text) > remaining:
            return f"{page}{gap}{_REST}\n"
        page += f"{gap}{text}\n"
    return page


def _folded(result: Result, view: Leaderboard | RankingView) -> Iterator[tuple[str, list[str | _Table]]]:
    """Titles and blocks of the parts that few readers need."""
    if drivers := build_judge_drivers(result):
        heads, moved = ("scores", "together", "by chance", *drivers.heads, "texts"), []
        for line in chain.from_iterable(drivers.criteria):
            pulls = [line.pulls.get(name) for name in drivers.heads]
            cells = [f"{pull.text} {pull.interval}".rstrip() if pull else "–" for pull in pulls]
            share = f"{line.together} {line.interval}".rstrip() or "–"
            texts = ", ".join(part for part in (line.texts, line.scope, line.note) if part)
            moved.append((_head(line.name, line.part), share, line.chance or "–", *cells, escape(texts)))
        yield "What moves the judge", [escape(drivers.lead), _Table(heads, moved), escape(drivers.legend)]
    if view.agreement:
        rows = [(_name(row.criterion), f"{row.alpha} {row.interval}".rstrip(), row.n) for row in view.agreement]
        yield "Agreement of the judges", [_Table(("criterion", "alpha", "texts"), rows), escape(ALPHA)]
    if isinstance(view, RankingView):
        yield "What the numbers mean", [escape(view.caption)]
    about = view.about
    lines = [f"- {name}: {escape(text, 500)}" for name, text in about.facts]
    lines += [f"- {escape(about.usage)}"] if about.usage else []
    lines += [f"- Judge {escape(name, 200)}: {escape(text, 500)}" for name, text in about.judges]
    for column in about.signed:
        if column.signature:
            method = f" ({escape(column.methods, 200)})" if column.methods else ""
            lines.append(f"- {_name(column.name)}: {_code(one_line(column.signature, 500))}{method}")
    yield "How it was made", ["\n".join(lines)]
    if isinstance(view, RankingView):
        win_rates: list[str | _Table] = []
        for contest in view.contests:
            if len(contest.systems) > 2:
                names = [_name(system) for system in contest.systems]
                matrix = [
                    (name, *(met.text for met in row[:_MOST_COLUMNS]))
                    for name, row in zip(names, contest.matrix, strict=True)
                ]
                win_rates += [f"{escape(contest.label, 200)}:", _Table(("", *names), matrix)]
        if win_rates:
            yield "Win rates in per cent, row against column", win_rates


def _code(text: str) -> str:
    """The text as a code span that no backtick in it can end."""
    flat = one_line(text)
    if not flat:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _name(text: str) -> str:
    return escape(text, _NAME)


def _means_blocks(board: Leaderboard) -> list[str | _Table]:
    """The table of means, a row per system, or, where that is too wide, a row per column."""
    heads = [f"{_head(*p)} {ARROWS[g.better]}".rstrip() for g in board.groups for p in g.parts.items()]
    rows = [tuple(_mean_cell(board.cells[system, column.name]) for column in board.columns) for system in board.systems]
    if board.lead:
        heads = [f"rank ({_name(board.lead)})", *heads]
        for n, system in enumerate(board.systems):
            standing = board.ranks.get(system)
            interval = f" [{standing.interval}]" if standing and standing.interval else ""
            rows[n] = (f"{standing.rank}{interval}" if standing else "–", *rows[n])
    names = [_name(system) for system in board.systems]
    if upright(board):
        names, heads, rows = heads, names, list(zip(*rows, strict=True))
    whole = [(name, *row) for name, row in zip(names, rows, strict=True)]
    return [_Table(["" if upright(board) else "system", *heads], whole), escape(board.caption)]


def upright(board: Leaderboard) -> bool:
    """Whether the table of means is easier to read with the columns below each other: many columns, few systems."""
    return len(board.columns) > 8 and len(board.systems) < len(board.columns)


def _head(column: str, part: str) -> str:
    """A column's heading: its name, and of a panel's own column that it is the mean."""
    return _name(column if not part or column.endswith(f"/{part}") else f"{column} ({part})")


def _mean_cell(cell: Cell) -> str:
    mean = f"**{cell.mean}**\\*" if cell.best else f"{cell.mean}{cell.mark}"
    coverage = f"({cell.coverage})" if cell.coverage else ""
    return " ".join(part for part in (mean, cell.interval, coverage) if part)


def _people_blocks(result: Result) -> Iterator[str | _Table]:
    """Correlation of the judges with human ratings, in short; the page has the rest."""
    grid = validation.brief(result.rated, LEVEL)
    if not grid.rows:
        return
    yield "### Against people"
    rows = (
        (
            *(_name(value) for value, _ in row[:2]),
            *(f"{escape(value)} {interval}".rstrip() for value, interval in row[2:]),
        )
        for row in grid.rows
    )
    yield _Table(grid.heads, rows, right=range(2, len(grid.heads)))
    blocks = {rated.criterion: validation.block(rated, LEVEL) for rated in result.rated}
    over = "; ".join(dict.fromkeys(block.over for block in blocks.values()))
    sentences = " ".join(
        f"{one_line(name, _NAME)}: {' '.join(block.sentences)}" for name, block in blocks.items() if block.sentences
    )
    yield escape(f"{over}. {sentences}")
