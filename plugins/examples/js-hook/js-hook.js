// A hook in JavaScript: blocks a tool call when one of its string arguments holds a forbidden word.
//
// The words come from the plugin's configuration (`forbidden`, a list of strings). A gate that fails refuses the call,
// so whatever goes wrong here is thrown as the `string` error of the contract, with its reason.

import * as config from "astrarium:host/config@0.1.0";

/** The first forbidden word in any string of a JSON value, however deep, or undefined. */
export function findForbidden(value, words) {
  if (typeof value === "string") {
    const text = value.toLowerCase();
    return words.find((word) => text.includes(word.toLowerCase()));
  }
  if (value === null || typeof value !== "object") return undefined;
  for (const inner of Object.values(value)) {
    const found = findForbidden(inner, words);
    if (found !== undefined) return found;
  }
  return undefined;
}

function forbiddenWords() {
  const words = JSON.parse(config.all()).forbidden ?? [];
  if (!Array.isArray(words) || words.some((word) => typeof word !== "string" || word === "")) {
    throw new Error("`forbidden` in the configuration must be a list of words");
  }
  return words;
}

export const preToolUse = {
  handle(_context, event) {
    try {
      const word = findForbidden(JSON.parse(event.input), forbiddenWords());
      if (word === undefined) return { tag: "proceed" };
      return { tag: "block", val: `an argument of ${event.tool} holds the forbidden word "${word}"` };
    } catch (error) {
      throw `the hook threw an exception: ${error?.message ?? error}`;
    }
  },
};
