#!/usr/bin/env python3
"""Turns a talk in Marp Markdown into PowerPoint: titles, bullet points, figures, tables as text, notes.

    python3 to_pptx.py talk.md talk.pptx

Needs python-pptx. Formulas stay as they are written; mend them by hand, or use Beamer where there are many.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_deck import marp  # noqa: E402

try:
    from pptx import Presentation
    from pptx.dml.color import RGBColor
    from pptx.util import Emu, Inches, Pt
except ImportError:
    sys.exit("to_pptx.py: python-pptx is not installed; ask the user to install it: pip install python-pptx")

DEEP, ACCENT, PALE, NIGHT = (RGBColor.from_string(code) for code in ("0B3D66", "B4460B", "F2F5F8", "0B1D33"))


def runs(paragraph, text, size, color):
    """Writes a line with its **emphasis**."""
    for number, piece in enumerate(re.split(r"\*\*(.+?)\*\*", text)):
        if piece:
            run = paragraph.add_run()
            run.text = piece.replace("`", "")
            run.font.size, run.font.bold = Pt(size), number % 2 == 1
            run.font.color.rgb = ACCENT if number % 2 == 1 else color


def lines(text):
    """Lines of a slide with their depth."""
    for line in text.splitlines():
        if not line.strip() or re.match(r"\s*\|?[\s:|-]+\|?\s*$", line):
            continue
        bullet = re.match(r"(\s*)(?:[-*+]|\d+\.)\s+(.*)", line)
        if bullet:
            yield len(bullet.group(1)) // 2, "• " + bullet.group(2)
        else:
            yield 0, re.sub(r"\s*\|\s*", "   ", line.strip().strip("|")).strip()


def picture(slide, path, left, top, width, height):
    """A picture as large as its place allows, in its middle."""
    shape = slide.shapes.add_picture(path, left, top)
    scale = min(width / shape.width, height / shape.height)
    shape.width, shape.height = Emu(int(shape.width * scale)), Emu(int(shape.height * scale))
    shape.left = Emu(int(left + (width - shape.width) / 2))
    shape.top = Emu(int(top + (height - shape.height) / 2))


def box(slide, left, top, width, height):
    frame = slide.shapes.add_textbox(left, top, width, height).text_frame
    frame.word_wrap = True
    return frame


def build(slides, folder):
    """The presentation, and the figures that it lacks."""
    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(13.333), Inches(7.5)
    margin, width = Inches(0.7), Inches(11.93)
    missing = []
    for content in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        color = PALE if content.lead else RGBColor(0x1B, 0x1F, 0x24)
        if content.lead:
            slide.background.fill.solid()
            slide.background.fill.fore_color.rgb = NIGHT
        title = box(slide, margin, Inches(2.2 if content.lead else 0.45), width, Inches(1.2))
        runs(title.paragraphs[0], content.title, 40 if content.lead else 30, PALE if content.lead else DEEP)
        for run in title.paragraphs[0].runs:
            run.font.bold = True
        text = list(lines(content.text))
        pictures = []
        for figure in content.figures:
            path = os.path.join(folder, figure)
            if os.path.isfile(path) and path.lower().endswith((".png", ".jpg", ".jpeg", ".gif")):
                pictures.append(path)
            else:
                missing.append(figure)
        top = Inches(3.6 if content.lead else 1.7)
        height = Inches(7.0) - top
        if text:
            share = width if not pictures else int(width * 0.36)
            frame = box(slide, margin, top, share, height)
            for number, (depth, line) in enumerate(text):
                paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
                paragraph.level = min(depth, 4)
                paragraph.space_after = Pt(8)
                runs(paragraph, line, 22, color)
        left = margin if not text else margin + int(width * 0.38)
        room = width if not text else int(width * 0.62)
        for number, path in enumerate(pictures):
            part = room // len(pictures)
            picture(slide, path, left + part * number, top, part, height)
        if content.notes:
            slide.notes_slide.notes_text_frame.text = content.notes
    return deck, missing


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: to_pptx.py talk.md talk.pptx")
    source, target = sys.argv[1:]
    try:
        with open(source, encoding="utf-8") as file:
            slides = marp(file.read())
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"to_pptx.py: {error}")
    if not slides:
        sys.exit("to_pptx.py: there is no slide; separate slides by lines of ---")
    deck, missing = build(slides, os.path.dirname(os.path.abspath(source)))
    deck.save(target)
    print(f"{target}: {len(slides)} slides")
    for figure in missing:
        print(f"missing, or of a kind that PowerPoint does not take: {figure}")


if __name__ == "__main__":
    main()
