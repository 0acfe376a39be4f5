#!/usr/bin/env python3
"""Merges search results, ranks them for reading, and prints a screening table in Markdown.

Input: a JSON array of papers with any of title, year, citations, bibcode, arxiv, doi, authors, or one JSON object a line.
A preprint and its published version are one paper. Rank: citations a year since publication; papers of the last two years
are ranked by date instead, since they had no time to be cited.

    python3 screen.py candidates.json [more.json ...] [--keep 30] [--year 2025]
"""

import argparse
import datetime
import json
import re
import sys
import unicodedata


def read(path):
    """Papers of a file: one array, or one object a line."""
    with open(path, encoding="utf-8-sig") as file:
        text = file.read().strip()
    if not text:
        return []
    if text.startswith("["):
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def number(value):
    """A whole number from what a search may have answered with; 0 where there is none."""
    match = re.search(r"\d+", str(value if value is not None else ""))
    return int(match.group()) if match else 0


def plain(title):
    """The letters and digits of a title, so that punctuation, case and TeX make no difference."""
    title = unicodedata.normalize("NFKD", re.sub(r"\\[a-zA-Z]+|[${}]", "", title or ""))
    return "".join(c for c in title.lower() if c.isalnum())


def keys(paper):
    """All by which two entries can be told to be one paper."""
    arxiv = re.sub(r"^arxiv:|v\d+$", "", str(paper.get("arxiv") or "").strip().lower())
    doi = re.sub(r"^https?://(dx\.)?doi\.org/", "", str(paper.get("doi") or "").strip().lower())
    found = [("bibcode", str(paper.get("bibcode") or "").strip()), ("arxiv", arxiv), ("doi", doi)]
    title = plain(paper.get("title"))
    # A short title such as "Erratum" says nothing.
    if len(title) > 20:
        found.append(("title", title))
    return [key for key in found if key[1]]


def merge(papers):
    """One entry a paper, with what each source knew."""
    merged, index = [], {}
    for paper in papers:
        known = [index[key] for key in keys(paper) if key in index]
        if known:
            entry = merged[known[0]]
            for field, value in paper.items():
                if field == "citations":
                    entry[field] = max(number(entry.get(field)), number(value))
                elif field == "bibcode" and "arXiv" in str(entry.get(field) or ""):
                    entry[field] = value or entry[field]
                elif not entry.get(field):
                    entry[field] = value
            place = known[0]
        else:
            place = len(merged)
            merged.append(dict(paper))
        for key in keys(merged[place]):
            index.setdefault(key, place)
    return merged


def classify(paper, now):
    """Class and sort key: founding, main, recent."""
    year = number(paper.get("year")) or number(str(paper.get("bibcode") or "")[:4])
    citations = number(paper.get("citations"))
    rate = citations / max(1, now - year + 1) if year else 0.0
    if year >= now - 1:
        kind = "新近"
    elif citations >= 200 and now - year >= 8:
        kind = "奠基"
    else:
        kind = "主干"
    return kind, rate, year, citations


def first_author(paper):
    """The first author's name as listed."""
    authors = paper.get("authors") or ""
    name = authors[0] if isinstance(authors, list) and authors else str(authors).split(";")[0]
    return name.split(",")[0].strip()


def cell(text):
    """A text as it may stand in a table."""
    return " ".join(str(text or "").split()).replace("|", "\\|")


def table(papers, keep, now):
    """The Markdown table, by class and rank."""
    rows = [(classify(paper, now), paper) for paper in papers]
    order = {"奠基": 0, "主干": 1, "新近": 2}
    rows.sort(key=lambda row: (order[row[0][0]], -row[0][2] if row[0][0] == "新近" else -row[0][1], plain(row[1].get("title"))))
    recent = [row for row in rows if row[0][0] == "新近"]
    others = [row for row in rows if row[0][0] != "新近"]
    # A third of the places is for recent papers, as far as there are any.
    for_recent = min(len(recent), max(keep // 3, keep - len(others)))
    kept = others[: keep - for_recent] + recent[:for_recent]
    lines = [
        f"# 筛选表（{len(papers)} 篇候选，列出 {len(kept)} 篇）",
        "",
        "| 类别 | 年份 | 每年引用 | 总引用 | 第一作者 | 题目 | 标识 | 留/弃 | 原因 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (kind, rate, year, citations), paper in kept:
        name = paper.get("bibcode") or (f"arXiv:{paper['arxiv']}" if paper.get("arxiv") else paper.get("doi"))
        cells = [kind, year or "?", f"{rate:.1f}", citations, first_author(paper), paper.get("title"), name, "", ""]
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--keep", type=int, default=30, help="papers to list")
    parser.add_argument("--year", type=int, default=datetime.date.today().year, help="the year that counts as now")
    arguments = parser.parse_args()
    try:
        papers = [paper for path in arguments.files for paper in read(path) if isinstance(paper, dict)]
    except (OSError, ValueError) as error:
        sys.exit(f"screen.py: {error}; give JSON files with papers")
    print(table(merge(papers), arguments.keep, arguments.year))


if __name__ == "__main__":
    main()
