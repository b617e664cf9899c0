// JSON whose numbers are shown, and sent again, as they were written.

const reviver = (isLost) => (_, value, context) => (typeof value === "number" && JSON.rawJSON && isLost(value, context.source) ? JSON.rawJSON(context.source) : value);
const ofAnswer = reviver((value, source) => !Number.isSafeInteger(value) && /^-?\d+$/.test(source));
const ofPerson = reviver((value, source) => String(value) !== source);

// An integer that a number of JavaScript would round becomes what JSON.stringify() writes exactly.
export const parse = (text) => JSON.parse(text, ofAnswer);

// What a person has typed, each number as it stands there. Throws SyntaxError.
export function typed(text) {
  const value = JSON.parse(text, ofPerson);
  if (!JSON.rawJSON && /\d{16}/.test(text)) throw new Error("This browser may round the number: send it from the command line, or with a newer browser.");
  return value;
}
