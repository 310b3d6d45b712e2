"""A figure of plan or time as SVG: the same drawing without plotly's own, for pages that run nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Any, NamedTuple

from workbench.views.figures.paper import CLEAR, FONT, GROUND
from workbench.views.figures.picture import Picture

_PAIR = re.compile(r"([-+.\deE]+),([-+.\deE]+)")
_DASHES = {"dash": "6,4", "dot": "2,3"}
_ANCHORS = {"right": "start", "left": "end", "center": "middle"}
"""Where plotly's words stand beside a point -> where SVG's begin."""


class _Scale(NamedTuple):
    """Numbers of an axis as pixels."""

    start: float
    end: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        span = (self.last - self.first) or 1
        return round(self.start + (value - self.first) / span * (self.end - self.start), 2)


class _Frame(NamedTuple):
    x: _Scale
    y: _Scale

    def path(self, drawn: str) -> str:
        """A path in pixels."""
        return _PAIR.sub(lambda pair: f"{self.x(float(pair[1]))} {self.y(float(pair[2]))}", drawn)


def svg(picture: Picture) -> str:
    """The figure, white in every theme like a printed page; what it says under the pointer is not in it."""
    drawn = picture.to_plotly_json()
    layout, traces = drawn["layout"], drawn["data"]
    wide, high, margin = layout["width"], layout["height"], layout["margin"]
    ticks = layout["yaxis"].get("ticktext") or ()
    left = max(margin["l"], *(20 + _width(_plain(one), 11) for one in ticks), 0)
    frame = _Frame(
        _Scale(left, wide - margin["r"], *layout["xaxis"]["range"]),
        _Scale(high - margin["b"], margin["t"], *layout["yaxis"]["range"]),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
        f' font-family="{escape(FONT)}">',
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<path d="M0 0V6" stroke="{GROUND}" stroke-width="3"/></pattern></defs>',
        _element("rect", width=wide, height=high, fill=layout["paper_bgcolor"]),
        *_axes(layout, frame, left, high - margin["b"]),
        *(_shape(one, frame) for one in layout.get("shapes") or ()),
        *(part for trace in traces if trace["type"] == "bar" for part in _bars(trace, frame)),
        *(part for trace in traces if trace.get("mode") == "text" for part in _words(trace, frame)),
        *(_note(one, frame) for one in layout.get("annotations") or ()),
        *_legend([one for one in traces if one["type"] == "scatter" and one.get("name")], high),
        *_head(layout["title"]),
        "</svg>",
    ]
    return "".join(parts)


def _element(name: str, inside: str = "", /, **attributes: object) -> str:
    told = "".join(f' {key.replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{told}>{inside}</{name}>" if inside else f"<{name}{told}/>"


def _plain(text: str) -> str:
    """What plotly's words say: their only tags are our own."""
    return unescape(re.sub(r"</?b>", "", text))


def _text(x: float, y: float, said: str, size: float, fill: str, anchor: str = "start") -> str:
    """Words around the height ``y``."""
    weight = {"font_weight": "bold"} if said.startswith("<b>") else {}
    look = {"font_size": size, "fill": fill, "text_anchor": anchor, **weight}
    return _element("text", escape(_plain(said), quote=False), x=x, y=round(y + 0.35 * size, 2), **look) if said else ""


def _width(text: str, size: float) -> float:
    return size * sum(1 if character > "\u2e7f" else 0.58 for character in text)


def _line(line: Mapping[str, Any]) -> dict[str, object]:
    """How a line looks."""
    dash = str(line.get("dash") or "solid")
    dashed = {"stroke_dasharray": _DASHES.get(dash, dash.replace("px", ""))} if dash != "solid" else {}
    return {"stroke": line.get("color", CLEAR), "stroke_width": line.get("width", 1), **dashed}


def _shape(shape: Mapping[str, Any], frame: _Frame) -> str:
    return _element("path", d=frame.path(shape["path"]), fill=shape.get("fillcolor", "none"), **_line(shape["line"]))


def _axes(layout: Mapping[str, Any], frame: _Frame, left: float, bottom: float) -> Iterator[str]:
    across, down = layout["xaxis"], layout["yaxis"]
    for at, said in zip(across.get("tickvals") or (), across.get("ticktext") or (), strict=True):
        x = frame.x(at)
        yield _element("path", d=f"M{x} {frame.y.end}V{bottom}", stroke=across["gridcolor"])
        yield _text(x, bottom + 12, said, 11, across["tickfont"]["color"], "middle")
    if title := across.get("title"):
        middle = (frame.x.start + frame.x.end) / 2
        yield _text(middle, bottom + 32, title["text"], 11, title["font"]["color"], "middle")
    for at, said in zip(down.get("tickvals") or (), down.get("ticktext") or (), strict=True):
        yield _text(left - 8, frame.y(at), said, 11, down["tickfont"]["color"], "end")


def _bars(trace: Mapping[str, Any], frame: _Frame) -> Iterator[str]:
    marker, font = trace["marker"], trace["textfont"]
    for i, (lane, start, length) in enumerate(zip(trace["y"], trace["base"], trace["x"], strict=True)):
        x0, x1 = frame.x(start), frame.x(start + length)
        top, bottom = frame.y(lane - trace["width"] / 2), frame.y(lane + trace["width"] / 2)
        place = {"x": x0, "y": top, "width": round(x1 - x0, 2), "height": round(bottom - top, 2)}
        line = marker["line"]
        yield _element("rect", **place, fill=marker["color"][i], stroke=line["color"][i], stroke_width=line["width"][i])
        if marker["pattern"]["shape"][i]:
            yield _element("rect", **place, fill="url(#hatch)", fill_opacity=marker["pattern"]["solidity"][i])
        inside = trace["textposition"] == "inside"
        if inside and _width(_plain(trace["text"][i]), font["size"]) > x1 - x0:
            continue
        at, anchor = ((x0 + x1) / 2, "middle") if inside else (x1 + 4, "start")
        yield _text(at, (top + bottom) / 2, trace["text"][i], font["size"], font["color"][i], anchor)


def _words(trace: Mapping[str, Any], frame: _Frame) -> Iterator[str]:
    font, anchor = trace["textfont"], _ANCHORS[trace["textposition"].split()[-1]]
    for i, (x, y, said) in enumerate(zip(trace["x"], trace["y"], trace["text"], strict=True)):
        colour = font["color"] if isinstance(font["color"], str) else font["color"][i]
        yield _text(frame.x(x), frame.y(y), said, font["size"], colour, anchor)


def _note(note: Mapping[str, Any], frame: _Frame) -> str:
    size = note["font"]["size"]
    return _text(
        frame.x(note["x"]), frame.y(note["y"]) - 0.7 * size, note["text"], size, note["font"]["color"], "middle"
    )


def _legend(entries: Sequence[Mapping[str, Any]], high: float) -> Iterator[str]:
    x, y = 20.0, high - 16
    for entry in entries:
        if entry["mode"] == "lines":
            yield _element("path", d=f"M{x} {y}h18", **_line(entry["line"]))
        else:
            marker = entry["marker"]
            look = {"fill": marker["color"], "stroke": marker["line"]["color"], "stroke_width": 1.4}
            yield _element("rect", x=x + 3, y=y - 5.5, width=11, height=11, **look)
        yield _text(x + 24, y, entry["name"], 11, "#1F1F1F")
        x += 42 + _width(_plain(entry["name"]), 11)


def _head(title: Mapping[str, Any]) -> Iterator[str]:
    yield _text(20, 26, title["text"], title["font"]["size"], title["font"]["color"])
    if under := title["subtitle"]["text"]:
        yield _text(20, 47, under, title["subtitle"]["font"]["size"], title["subtitle"]["font"]["color"])
