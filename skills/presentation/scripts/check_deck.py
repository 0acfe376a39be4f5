#!/usr/bin/env python3
"""Checks a talk in Marp Markdown or Beamer: length, words on a slide, titles, figures, notes. Needs nothing but Python.

    python3 check_deck.py talk.md|talk.tex --minutes 12

Exit status 1 when something must be mended.
"""

import argparse
import os
import re
import sys

#: Chinese characters, and words of other languages, that a slide may have.
WIDE, WORDS = 40, 25

#: Titles that say what a slide is about and not what it says.
EMPTY_TITLES = {
    "结果", "方法", "数据", "背景", "引言", "动机", "讨论", "总结", "结论", "展望", "局限", "目录", "概述",
    "results", "result", "methods", "method", "data", "background", "introduction", "motivation", "discussion",
    "summary", "conclusions", "conclusion", "outlook", "outline", "overview",
}


class Slide:
    """One slide: title, text, notes, figures, and whether it is kept for questions."""

    def __init__(self, title, text, notes, figures, backup=False, lead=False):
        self.title, self.text, self.notes, self.figures = title, text, notes, figures
        self.backup, self.lead = backup, lead


def marp(text):
    """Slides of a Marp file."""
    text = re.sub(r"\A\ufeff?---\n.*?\n---\n", "", text.replace("\r\n", "\n"), count=1, flags=re.S)
    slides, backup = [], False
    for part in re.split(r"^---\s*$", text, flags=re.M):
        comments = re.findall(r"<!--(.*?)-->", part, flags=re.S)
        directives = [one for one in comments if re.match(r"\s*_?[a-zA-Z]+\s*:", one)]
        notes = [one.strip() for one in comments if one not in directives and one.strip()]
        body = re.sub(r"<!--.*?-->", "", part, flags=re.S)
        figures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)", body)
        body = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", body)
        found = re.search(r"^#{1,2}\s+(.+)$", body, flags=re.M)
        title = found.group(1).strip() if found else ""
        if found:
            body = body.replace(found.group(0), "", 1)
        backup = backup or title.startswith(("备用", "Backup"))
        lead = any("lead" in one for one in directives)
        slides.append(Slide(title, body, " ".join(notes), figures, backup, lead))
    return [slide for slide in slides if slide.title or slide.text.strip() or slide.figures]


def beamer(text):
    """Slides of a Beamer file."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    appendix = text.find("\\appendix")
    slides = []
    for match in re.finditer(r"\\begin\{frame\}(.*?)\\end\{frame\}", text, flags=re.S):
        body = re.sub(r"\A(\s*\[[^\]]*\])", "", match.group(1))
        found = re.match(r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}", body)
        title = found.group(1).strip() if found else ""
        body = body[found.end():] if found else body
        notes = re.findall(r"\\note\{((?:[^{}]|\{[^{}]*\})*)\}", body)
        body = re.sub(r"\\note\{(?:[^{}]|\{[^{}]*\})*\}", "", body)
        figures = re.findall(r"\\(?:includegraphics|figureslot)(?:\[[^\]]*\])?\{([^}]+)\}", body)
        lead = "\\titlepage" in body
        body = re.sub(r"\\(?:includegraphics|figureslot)(?:\[[^\]]*\])?\{[^}]*\}", "", body)
        body = re.sub(r"\\[a-zA-Z]+\*?(\[[^\]]*\])?|[{}]", " ", body)
        backup = appendix >= 0 and match.start() > appendix
        slides.append(Slide(title, body, " ".join(notes), figures, backup, lead))
    return slides


def size(text):
    """Chinese characters and other words of a text; formulas are left out."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " ", text, flags=re.S)
    wide = len(re.findall(r"[\u3400-\u9fff]", text))
    words = len(re.findall(r"[A-Za-z0-9][\w'.%-]*", re.sub(r"[\u3400-\u9fff]", " ", text)))
    return wide, words


def exists(folder, figure):
    """Whether a figure is there; LaTeX may leave out its ending and its folder."""
    if re.match(r"https?:", figure):
        return True
    names = [figure] + [figure + ending for ending in (".pdf", ".png", ".jpg")]
    return any(os.path.isfile(os.path.join(folder, base, name)) for base in ("", "figures") for name in names)


def check(slides, folder, minutes):
    """What is wrong, and what should be known."""
    wrong, notes = [], []
    talk = [slide for slide in slides if not slide.backup]
    estimate = sum(0.5 if slide.lead else (1.5 if slide.figures else 1.0) for slide in talk)
    notes.append(f"{len(talk)} 页，另有备用 {len(slides) - len(talk)} 页；估计 {estimate:g} 分钟")
    if minutes and estimate > minutes:
        wrong.append(f"估计 {estimate:g} 分钟，超过 {minutes:g} 分钟；删去离那一句话最远的页")
    if minutes and estimate < 0.6 * minutes:
        notes.append("比时长短很多：结果讲透了吗？")
    for number, slide in enumerate(slides, 1):
        where = f"第 {number} 页"
        if not slide.title and not slide.lead:
            wrong.append(f"{where}：没有标题；写一句完整的判断")
        elif slide.title.strip(" ：:。.").lower() in EMPTY_TITLES:
            wrong.append(f"{where}：标题“{slide.title}”只说是什么页；改成一句判断")
        wide, words = size(slide.text)
        if not slide.lead and wide / WIDE + words / WORDS > 1:
            wrong.append(f"{where}：{wide} 个汉字、{words} 个词，太多；移进备注")
        for figure in slide.figures:
            if not exists(folder, figure):
                wrong.append(f"{where}：图 {figure} 不在")
        if not slide.notes and not slide.backup:
            notes.append(f"{where}：没有讲稿备注")
    spoken = sum(size(slide.notes)[0] for slide in talk) / 200 + sum(size(slide.notes)[1] for slide in talk) / 120
    if spoken and minutes and spoken > minutes:
        wrong.append(f"讲稿约 {spoken:.1f} 分钟，超过 {minutes:g} 分钟")
    return wrong, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("deck")
    parser.add_argument("--minutes", type=float, default=0, help="minutes for the talk, questions left out")
    arguments = parser.parse_args()
    try:
        with open(arguments.deck, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"check_deck.py: {error}")
    slides = beamer(text) if arguments.deck.endswith(".tex") else marp(text)
    if not slides:
        sys.exit("check_deck.py: 没有找到幻灯片；Marp 用 --- 分页，Beamer 用 frame 环境")
    wrong, notes = check(slides, os.path.dirname(os.path.abspath(arguments.deck)), arguments.minutes)
    for text in wrong:
        print(f"错误：{text}")
    for text in notes:
        print(f"注意：{text}")
    print("标题连读：" + " / ".join(slide.title for slide in slides if slide.title and not slide.backup))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
