"""The picture of which room imports which, and a line about every room: the generated part of architecture.md.

The rooms and their order are those of tests/rooms.py, the arrows are read from the source. Rooms of one kind share a
box; an arrow is left out where a longer way says the same.
"""

from __future__ import annotations

import ast
import re
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # Why: the order of the rooms is that of the tests
from rooms import BOTTOM, SOURCE, STAGES, import_graph

Graph = dict[str, set[str]]  # {importing: imported}

GROUPS = {"shared by all": BOTTOM, "stages": STAGES}
HIDDEN = {"__init__", "__main__", "live"}  # doors without a room behind them
_CHARACTER, _PAD, _GAP = 7.6, 11.0, 16.0  # of a label, inside a box, between boxes
_ROOM_HEIGHT, _GROUP_HEIGHT, _STEP = 30.0, 66.0, 46.0  # of a box, of a group's box, between rows
_LANE = 14.0  # width that an arrow takes in a row that it passes
_HEAD = (
    '<defs><marker id="import-graph-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8Z"/></marker></defs>'
)
_BLOCK = re.compile(r"(<!-- rooms -->\n).*?(<!-- end -->)", re.DOTALL)


class Box(NamedTuple):
    """A room, a group of rooms, or a lane for a passing arrow, where it is drawn."""

    x: float  # left edge
    y: float  # upper edge
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def fill_architecture(page: str) -> str:
    """The page with its generated part written anew."""
    rooms = {room: found for room, found in import_graph().items() if room not in HIDDEN}
    graph = {room: found - HIDDEN for room, found in rooms.items()}
    return _BLOCK.sub(lambda found: f"{found[1]}\n{draw(graph)}\n\n{list_rooms(graph)}\n\n{found[2]}", page)


def list_rooms(graph: Graph) -> str:
    """A table of what every room holds and imports, lowest first."""
    layers = find_layers(graph)
    rows = [
        f"| `{room}` | {describe_room(room)} | {', '.join(f'`{name}`' for name in sorted(graph[room]))} |"
        for room in sorted(graph, key=lambda room: (layers[room], room))
    ]
    return "\n".join(["| room | holds | imports |", "| --- | --- | --- |", *rows])


def describe_room(room: str) -> str:
    """The first sentence that its source says about itself."""
    path = SOURCE / room / "__init__.py" if (SOURCE / room).is_dir() else SOURCE / f"{room}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].removesuffix(".").replace("|", "\\|")


def draw(graph: Graph) -> str:
    """The graph as one line of SVG, in the page's own colours."""
    members = {name: tuple(sorted(rooms & set(graph))) for name, rooms in GROUPS.items()}
    nodes = lift_groups(graph, members)
    rows, links = route(reduce_links(nodes))
    boxes = place(order_rows(rows, links), members)
    width = max(box.x + box.width for box in boxes.values())
    height = max(box.y + box.height for box in boxes.values())
    ends = find_ends(links, boxes, members)
    arrows = "".join(draw_arrow(boxes, link, ends[link], is_end=link[1] in nodes) for link in links)
    drawn = "".join(draw_node(name, boxes[name], members.get(name)) for name in nodes)
    text = "; ".join(f"{room} imports {', '.join(sorted(found))}" for room, found in graph.items() if found)
    return (
        f'<div class="import-graph"><svg role="img" viewBox="-1 -1 {width + 2:.0f} {height + 2:.0f}" '
        f'style="--width: {width + 2:.0f}px" aria-labelledby="import-graph-t import-graph-d">'
        f'<title id="import-graph-t">Which room imports which: every arrow points down</title>'
        f'<desc id="import-graph-d">{escape(text)}</desc>{_HEAD}{arrows}{drawn}</svg></div>'
    )


def lift_groups(graph: Graph, members: dict[str, tuple[str, ...]]) -> Graph:
    """The graph with every group as one node."""
    home = {room: name for name, rooms in members.items() for room in rooms}
    lifted: Graph = {}
    for room, found in graph.items():
        node = home.get(room, room)
        lifted.setdefault(node, set()).update({home.get(other, other) for other in found} - {node})
    return lifted


def reduce_links(graph: Graph) -> Graph:
    """Without the links that a longer way replaces."""

    def reached(room: str) -> set[str]:
        return graph[room].union(*(reached(other) for other in graph[room]))

    return {room: found - set().union(*(reached(other) for other in found)) for room, found in graph.items()}


def find_layers(graph: Graph) -> dict[str, int]:
    """{node: row from below}: above all that it imports; one that imports nothing stands just below its importers."""
    layers: dict[str, int] = {}
    while len(layers) < len(graph):
        for node, found in graph.items():
            if found <= set(layers):
                layers[node] = 1 + max((layers[other] for other in found), default=-1)
    for node in [node for node, found in graph.items() if not found]:
        layers[node] = min((layers[other] - 1 for other in graph if node in graph[other]), default=0)
    return layers


def route(graph: Graph) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Rows of nodes and lanes from below, and the links between neighbouring rows, each from above to below."""
    layers = find_layers(graph)
    rows: list[list[str]] = [[] for _ in range(1 + max(layers.values()))]
    for node, layer in layers.items():
        rows[layer].append(node)
    links = []
    for node, found in graph.items():
        for other in sorted(found):
            lanes = [f"{node} > {other} at {layer}" for layer in range(layers[node] - 1, layers[other], -1)]
            for below, lane in enumerate(lanes, start=1):
                rows[layers[node] - below].append(lane)
            links += list(zip([node, *lanes], [*lanes, other], strict=True))
    return rows, links


def order_rows(rows: list[list[str]], links: list[tuple[str, str]]) -> list[list[str]]:
    """Each row by the mean place of its neighbours, upwards and downwards in turn, so that few arrows cross."""
    near: dict[str, list[str]] = {name: [] for row in rows for name in row}
    for above, below in links:
        near[above].append(below)
        near[below].append(above)
    places = {name: (number + 0.5) / len(row) for row in rows for number, name in enumerate(row)}
    for turn in range(12):
        for row in rows if turn % 2 else reversed(rows):
            means = {name: sum(places[other] for other in near[name]) / max(1, len(near[name])) for name in row}
            row.sort(key=lambda name, means=means: means[name])
            places |= {name: (number + 0.5) / len(row) for number, name in enumerate(row)}
    return rows


def place(rows: list[list[str]], members: dict[str, tuple[str, ...]]) -> dict[str, Box]:
    """Every row centred, the highest first."""
    sizes = {name: size(name, members.get(name)) for row in rows for name in row}
    widths = [sum(sizes[name][0] for name in row) + _GAP * (len(row) - 1) for row in rows]
    boxes, y = {}, 0.0
    for row, width in reversed(list(zip(rows, widths, strict=True))):
        x, height = (max(widths) - width) / 2, max(sizes[name][1] for name in row)
        for name in row:
            boxes[name] = Box(x, y, sizes[name][0], height if " > " in name else sizes[name][1])
            x += sizes[name][0] + _GAP
        y += height + _STEP
    return boxes


def size(name: str, members: tuple[str, ...] | None) -> tuple[float, float]:
    """Width and height of what is drawn for a name."""
    if " > " in name:
        return _LANE, _ROOM_HEIGHT
    if members is None:
        return _CHARACTER * len(name) + 2 * _PAD, _ROOM_HEIGHT
    return sum(size(room, None)[0] + _PAD for room in members) + _PAD, _GROUP_HEIGHT


def draw_node(name: str, box: Box, members: tuple[str, ...] | None) -> str:
    if members is None:
        return draw_room(name, box)
    title = f'<text class="group" x="{box.x + _PAD:.1f}" y="{box.y + 18:.1f}">{escape(name)}</text>'
    parts = [draw_box(box, ' class="group"'), title]
    x = box.x + _PAD
    for room in members:
        width, height = size(room, None)
        parts.append(draw_room(room, Box(x, box.y + 26, width, height)))
        x += width + _PAD
    return "".join(parts)


def draw_room(room: str, box: Box) -> str:
    y = box.y + box.height / 2 + 4.5  # Why: the middle of small letters
    label = f'<text x="{box.middle:.1f}" y="{y:.1f}" text-anchor="middle">{escape(room)}</text>'
    return f'<g class="room"><title>{escape(describe_room(room))}</title>{draw_box(box)}{label}</g>'


def draw_box(box: Box, kind: str = "") -> str:
    sides = zip(("x", "y", "width", "height"), box, strict=True)
    shape = " ".join(f'{name}="{side:.1f}"' for name, side in sides)
    return f'<rect{kind} {shape} rx="4"/>'


def find_ends(
    links: list[tuple[str, str]], boxes: dict[str, Box], members: dict[str, tuple[str, ...]]
) -> dict[tuple[str, str], tuple[float, float]]:
    """{link: where it leaves the upper box, and where it meets the lower one}; several at one edge lie side by side."""
    ends = {}
    for above, below in links:
        leaving = sorted((link for link in links if link[0] == above), key=lambda link: boxes[link[1]].middle)
        coming = sorted((link for link in links if link[1] == below), key=lambda link: boxes[link[0]].middle)
        x = boxes[above].middle + _LANE * (leaving.index((above, below)) - (len(leaving) - 1) / 2)
        to_x = boxes[below].middle + _LANE * (coming.index((above, below)) - (len(coming) - 1) / 2)
        if below in members:  # straight down
            to_x = x = min(max(x, boxes[below].x + _PAD), boxes[below].x + boxes[below].width - _PAD)
        ends[above, below] = (x, to_x)
    return ends


def draw_arrow(boxes: dict[str, Box], link: tuple[str, str], ends: tuple[float, float], *, is_end: bool) -> str:
    """From the lower edge of what imports to the upper edge of what is imported, and down the lane where it passes."""
    (x, to_x), y, below = ends, boxes[link[0]].y + boxes[link[0]].height, boxes[link[1]]
    half = (below.y - y) / 2
    curve = f"M{x:.1f} {y:.1f}C{x:.1f} {y + half:.1f} {to_x:.1f} {below.y - half:.1f} {to_x:.1f} {below.y:.1f}"
    if is_end:
        return f'<path class="arrow" marker-end="url(#import-graph-head)" d="{curve}"/>'
    return f'<path class="arrow" d="{curve}V{below.y + below.height:.1f}"/>'
