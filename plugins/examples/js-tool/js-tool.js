// A tool in JavaScript: counts the words of a text, also where words are not parted by spaces.
//
// Nothing is imported: the tool is a pure function of its arguments. An exception that leaves an exported function
// would end the guest with a trap, so every call runs inside `answer`, which turns exceptions into tool errors.

// Code point ranges instead of `\p{…}`: StarlingMonkey is built without the Unicode property tables. `py_tool.py` has
// the same ones.

// Han characters and kana: Chinese and Japanese write no spaces, so each counts as a word.
const IDEOGRAPH =
  /[\u3005-\u3007\u3041-\u3096\u309D-\u309F\u30A1-\u30FA\u30FD-\u30FF\u31F0-\u31FF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\uFF66-\uFF9D\u{20000}-\u{3FFFF}]/u;
// What neither begins nor ends a word: the marks inside `don't` and `well-known`, joiners, sound and variation marks.
const JOINER = /['\u2019\u2010\u2011\u200C\u200D\u3099\u309A\u30FC\uFE00-\uFE0F-]/u;
// What ends a word: spaces, controls, punctuation, symbols.
const BREAK =
  /[\s\0-&(-,./:-@\[-`{-\xA9\xAB-\xB4\xB6-\xB9\xBB-\xBF\xD7\xF7\u2000-\u206F\u2190-\u2BFF\u3000-\u3004\u3008-\u3020\u30FB\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\u{1F000}-\u{1FAFF}]/u;

/** Counts words and characters (Unicode code points). */
export function count(text) {
  let words = 0;
  let characters = 0;
  let inWord = false;
  for (const character of text) {
    characters += 1;
    if (IDEOGRAPH.test(character)) {
      words += 1;
      inWord = false;
    } else if (JOINER.test(character)) {
      continue;
    } else if (BREAK.test(character)) {
      inWord = false;
    } else {
      if (!inWord) words += 1;
      inWord = true;
    }
  }
  return { words, characters };
}

const countWords = {
  name: "count_words",
  summary: "Counts the words of a text.",
  description:
    "Counts words and characters of a text. Each Chinese or Japanese character counts as one word; in other scripts " +
    'a word is a run of letters and digits. Answers with {"words": N, "characters": N}.',
  inputSchema: JSON.stringify({
    type: "object",
    properties: { text: { type: "string", description: "The text to count." } },
    required: ["text"],
    additionalProperties: false,
  }),
  readOnly: true,
  extra: "{}",
};

function answer(body) {
  try {
    return body();
  } catch (error) {
    // What is thrown from here on is a `tool-error` of the contract.
    if (error?.tag) throw error;
    throw { tag: "failed", val: `the tool threw an exception: ${error?.message ?? error}` };
  }
}

export const tools = {
  listTools() {
    return [countWords];
  },

  callTool(_context, name, input) {
    return answer(() => {
      if (name !== countWords.name) throw { tag: "unknown-tool", val: name };
      const { text } = JSON.parse(input);
      if (typeof text !== "string") throw { tag: "invalid-input", val: "`text` must be a string" };
      return { parts: [{ tag: "json", val: JSON.stringify(count(text)) }], isError: false, extra: "{}" };
    });
  },
};
