"""A card as Markdown, for a pull request: sentences and matrices in the open, the rest folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.audit.card import Card
from judge.report.renderers.markdown import LIMIT, escape
from judge.report.views.audit import Detail, Layout, Matrix, ShownCell, layout

_NAME = 80  # characters of a name
_REST = "… The rest is in the page of the card.\n"


def render(card: Card) -> str:
    """GitHub-flavoured, at most 60,000 characters: what does not fit is left out from the end, and said."""
    page = ""
    for block in _blocks(layout(card)):
        if len(page) + len(block) + len(_REST) > LIMIT:
            return page + _REST
        page += f"{block}\n\n"
    return page.rstrip("\n") + "\n"


def _blocks(shown: Layout) -> Iterator[str]:
    yield f"## {escape(shown.title, 200)}"
    yield from (f"> {escape(note, 500)}" for note in shown.notes)
    if shown.told:
        yield "\n".join(f"- {escape(sentence)}" for sentence in shown.told)
    for matrix, details in ((shown.sensitivity, shown.own), (shown.injection, shown.attacks)):
        if matrix:
            yield from _matrix(matrix, details)
    yield from _biases(shown)
    for title, rows in (("Left out", shown.left_out), ("Judgments that failed", shown.failures)):
        if rows:
            lines = [f"- {escape(name, 200)}: {escape(text, 500)}" for name, text in rows]
            yield "\n".join([f"### {title}", "", *lines])
    if shown.facts:
        yield _folded("How it was made", "\n".join(f"- {name}: {escape(text, 300)}" for name, text in shown.facts))
    if shown.sensitivity or shown.injection:
        yield _folded("What the numbers mean", escape(shown.how))


def _matrix(matrix: Matrix, details: Sequence[Detail]) -> Iterator[str]:
    yield f"### {matrix.title}"
    rows = [(escape(name, _NAME), *(_cell(cell) for cell in cells)) for name, cells in matrix.rows]
    told = f"\n\nIn brackets: the share that moved the other way. {escape(matrix.told)}".rstrip()
    yield _grid(("", *(escape(name, _NAME) for name in matrix.criteria)), rows, 1) + told
    cells = [
        (escape(one.criterion, _NAME), f"{one.mark} {escape(one.change, _NAME)}".lstrip(), *_numbers(one))
        for one in details
    ]
    heads = ("criterion", "change", "moved", "against", "mean change", "p (Holm)", "texts", "failed")
    yield _folded(
        "Its own damage in numbers" if matrix.title == "Sensitivity" else "In numbers", _grid(heads, cells, 2)
    )


def _cell(cell: ShownCell | None) -> str:
    if cell is None:
        return "–"
    text = f"{cell.text}{f' ({cell.against})' if cell.against else ''} {cell.move}{cell.told}"
    return f"{cell.mark} **{text}**" if cell.own else text


def _numbers(one: Detail) -> tuple[str, ...]:
    return one.rate, one.against, one.move, one.p, one.n, one.failed


def _biases(shown: Layout) -> Iterator[str]:
    if shown.biases:
        rows = [
            (
                escape(bias.probe),
                escape(group.what, 200) if not place else "",
                escape(row.criterion, _NAME),
                f"{f'**{row.value}** {row.mark}' if row.mark else row.value} {row.interval}".rstrip(),
                row.p,
                row.n,
            )
            for bias in shown.biases
            for group in bias.groups
            for place, row in enumerate(group.rows)
        ]
        yield "### Bias"
        yield f"{_grid(('probe', '', 'criterion', 'value', 'p (Holm)', 'n'), rows, 3)}\n\n{escape(shown.biases_how)}"
    if shown.use:
        lines = [f"- {escape(one.criterion, _NAME)}: {escape(one.told, 500)}" for one in shown.use]
        yield _folded("How often each label is given", "\n".join(lines))


def _folded(title: str, text: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> str:
    """A table whose first columns are names and whose others are numbers."""
    rule = ["---"] * names + ["---:"] * (len(heads) - names)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))
