#!/usr/bin/env python3
"""Checks figures as a journal's production would: width, fonts, resolution, size. Needs nothing but Python.

    python3 check_figure.py figure.pdf [figure.png ...] [--journal aas|mnras|aa|nature]

Exit status 1 when something must be mended.
"""

import argparse
import os
import re
import struct
import sys
import zlib

#: Widths in inches: single column, double column.
WIDTHS = {"aas": (3.5, 7.1), "mnras": (3.32, 6.97), "aa": (3.46, 7.09), "nature": (3.50, 7.20)}

#: Inches that a width may differ.
TOLERANCE = 0.1

#: Bytes past which submission systems complain.
LARGE = 10 << 20


def objects(data):
    """The text of a PDF with its compressed streams opened, as far as they are."""
    parts = [data]
    for match in re.finditer(rb"stream\r?\n", data):
        try:
            parts.append(zlib.decompressobj().decompress(data[match.end():], 4 << 20))
        except zlib.error:
            pass
    return b"\n".join(parts)


def pdf(data):
    """Width in inches, and what is wrong."""
    text = objects(data)
    wrong, notes = [], []
    box = re.search(rb"/MediaBox\s*\[\s*([-\d.]+)\s+([-\d.]+)\s+([-\d.]+)\s+([-\d.]+)\s*\]", text)
    width = None
    if box:
        left, _, right, _ = (float(value) for value in box.groups())
        width = (right - left) / 72
    else:
        wrong.append("没有 MediaBox，不像是 PDF 图件")
    drawn = re.search(rb"/Subtype\s*/Type3\b", text)
    if drawn:
        wrong.append("含 Type 3 字体，多数期刊拒收；设置 pdf.fonttype: 42 后重画")
    named = re.search(rb"/Type\s*/Font\b", text)
    embedded = re.search(rb"/FontFile[23]?\b", text)
    if named and not embedded and not drawn:
        wrong.append("字体没有内嵌；用 pubfig 的样式重画")
    if not named:
        notes.append("没有文字对象：轴名若已转成曲线，以后无法检索和修改")
    return width, wrong, notes


def png(data):
    """Width in inches where the file tells its resolution, and what is wrong."""
    wrong, notes = [], []
    pixels, _ = struct.unpack(">II", data[16:24])
    at, dpi = 8, None
    while at + 12 <= len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"pHYs" and size >= 9:
            per_unit, _, unit = struct.unpack(">IIB", data[at + 8:at + 17])
            dpi = per_unit * 0.0254 if unit == 1 else None
        if kind == b"IDAT":
            break
        at += 12 + size
    if dpi is None:
        wrong.append("没有写明分辨率；用 savefig(..., dpi=300) 重存")
        return None, wrong, notes
    if dpi < 299:
        wrong.append(f"分辨率 {dpi:.0f} dpi，期刊要求至少 300")
    return pixels / dpi, wrong, notes


def check(path, journal):
    """Lines about one file, and whether it is good."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return [f"错误：{error}"], False
    if data.startswith(b"%PDF"):
        width, wrong, notes = pdf(data)
    elif data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) > 33:
        width, wrong, notes = png(data)
    else:
        return ["错误：既不是 PDF 也不是 PNG；线条图交 PDF，图像交 PNG"], False
    if width is not None:
        single, double = WIDTHS[journal]
        notes.append(f"宽 {width:.2f} 英寸")
        if min(abs(width - single), abs(width - double)) > TOLERANCE and width > single:
            wrong.append(f"宽度既不是单栏 {single} 也不是双栏 {double} 英寸；按印刷尺寸重画，不要缩放")
        if width < 0.6 * single:
            wrong.append("比半栏还窄，字会看不清")
    if len(data) > LARGE:
        wrong.append(f"{len(data) >> 20} MiB 太大；点多时对散点设 rasterized=True")
    lines = [f"错误：{text}" for text in wrong] + [f"注意：{text}" for text in notes]
    return lines, not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--journal", choices=sorted(WIDTHS), default="aas")
    arguments = parser.parse_args()
    good = True
    for path in arguments.files:
        lines, fine = check(path, arguments.journal)
        good &= fine
        print(f"{os.path.basename(path)}：{'通过' if fine else '要改'}")
        for line in lines:
            print(f"  {line}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
