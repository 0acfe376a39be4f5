"""A hook in Python: blocks a tool call when one of its string arguments holds a forbidden word.

The words come from the plugin's configuration (`forbidden`, a list of strings). A gate that fails refuses the call, so
whatever goes wrong here is raised as the `string` error of the contract, with its reason.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.pre_tool_use import PreToolUseDecision_Block, PreToolUseDecision_Proceed
from wit_world.imports import config


def find_forbidden(value, words):
    """The first forbidden word in any string of a JSON value, however deep, or None."""
    if isinstance(value, str):
        text = value.lower()
        return next((word for word in words if word.lower() in text), None)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            found = find_forbidden(inner, words)
            if found is not None:
                return found
    return None


def forbidden_words():
    words = json.loads(config.all()).get("forbidden", [])
    if not isinstance(words, list) or any(not isinstance(word, str) or word == "" for word in words):
        raise ValueError("`forbidden` in the configuration must be a list of words")
    return words


class PreToolUse(exports.PreToolUse):
    def handle(self, ctx, event):
        try:
            word = find_forbidden(json.loads(event.input), forbidden_words())
        except Exception as error:
            raise Err(f"the hook raised an exception: {error}")
        if word is None:
            return PreToolUseDecision_Proceed()
        return PreToolUseDecision_Block(f'an argument of {event.tool} holds the forbidden word "{word}"')
