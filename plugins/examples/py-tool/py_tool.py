"""A tool in Python: counts the words of a text, also where words are not parted by spaces.

Imports stand at the top of the module: componentize-py runs the module once when it is built and keeps the result, and
a guest has no library on disk to import from later. An exception that leaves an exported function would end the guest
with a trap, so `call_tool` turns exceptions into tool errors.
"""

import json
import re

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.tools import (
    ToolDefinition,
    ToolError_Failed,
    ToolError_InvalidInput,
    ToolError_UnknownTool,
    ToolOutput,
)
from wit_world.imports.types import Part_Json

# The ranges are those of `js-tool.js`.

# Han characters and kana: Chinese and Japanese write no spaces, so each counts as a word.
IDEOGRAPH = re.compile(
    r"[\u3005-\u3007\u3041-\u3096\u309D-\u309F\u30A1-\u30FA\u30FD-\u30FF\u31F0-\u31FF\u3400-\u4DBF\u4E00-\u9FFF"
    r"\uF900-\uFAFF\uFF66-\uFF9D\U00020000-\U0003FFFF]"
)
# What neither begins nor ends a word: the marks inside `don't` and `well-known`, joiners, sound and variation marks.
JOINER = re.compile(r"['\u2019\u2010\u2011\u200C\u200D\u3099\u309A\u30FC\uFE00-\uFE0F-]")
# What ends a word: spaces, controls, punctuation, symbols.
BREAK = re.compile(
    r"[\s\0-&(-,./:-@\[-`{-\xA9\xAB-\xB4\xB6-\xB9\xBB-\xBF\xD7\xF7\u2000-\u206F\u2190-\u2BFF\u3000-\u3004\u3008-\u3020"
    r"\u30FB\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\U0001F000-\U0001FAFF]"
)

COUNT_WORDS = ToolDefinition(
    name="count_words",
    summary="Counts the words of a text.",
    description=(
        "Counts words and characters of a text. Each Chinese or Japanese character counts as one word; in other scripts "
        'a word is a run of letters and digits. Answers with {"words": N, "characters": N}.'
    ),
    input_schema=json.dumps(
        {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text to count."}},
            "required": ["text"],
            "additionalProperties": False,
        }
    ),
    read_only=True,
    extra="{}",
)


def count(text):
    """Counts words and characters (Unicode code points)."""
    words = 0
    in_word = False
    for character in text:
        if IDEOGRAPH.match(character):
            words += 1
            in_word = False
        elif JOINER.match(character):
            continue
        elif BREAK.match(character):
            in_word = False
        else:
            words += not in_word
            in_word = True
    return {"words": words, "characters": len(text)}


class Tools(exports.Tools):
    def list_tools(self):
        return [COUNT_WORDS]

    def call_tool(self, ctx, name, input):
        if name != COUNT_WORDS.name:
            raise Err(ToolError_UnknownTool(name))
        try:
            text = json.loads(input).get("text")
            if not isinstance(text, str):
                raise Err(ToolError_InvalidInput("`text` must be a string"))
            counts = json.dumps(count(text), separators=(",", ":"))
            return ToolOutput(parts=[Part_Json(counts)], is_error=False, extra="{}")
        except Err:
            raise
        except Exception as error:
            raise Err(ToolError_Failed(f"the tool raised an exception: {error}"))
