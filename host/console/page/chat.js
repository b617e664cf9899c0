// The chat protocol: frames of an agent become messages that can be shown.

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

// Undefined: it is no JSON.
export function jsonOf(text, read = JSON.parse) {
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

// A message that an answer's chunks build, part by part.
export function addChunk(message, chunk) {
  const last = (type, id) => message.parts.findLast((each) => each.type === type && (id === undefined || each.id === id));
  const tool = message.parts.findLast((each) => each.toolCallId === chunk.toolCallId && chunk.toolCallId !== undefined);
  const setTool = (state, more) => {
    if (tool) Object.assign(tool, { state, ...more });
    else message.parts.push({ type: `tool-${chunk.toolName ?? "unknown"}`, toolCallId: chunk.toolCallId, state, ...more });
  };
  switch (chunk.type) {
    case "start": message.id = chunk.messageId ?? message.id; break;
    case "text-start": message.parts.push({ type: "text", id: chunk.id, text: "" }); break;
    case "reasoning-start": message.parts.push({ type: "reasoning", id: chunk.id, text: "" }); break;
    case "text-delta":
    case "reasoning-delta": {
      const type = chunk.type.replace("-delta", "");
      const part = last(type, chunk.id);
      if (part) part.text += chunk.delta;
      else message.parts.push({ type, id: chunk.id, text: chunk.delta });
      break;
    }
    case "tool-input-start": setTool("input-streaming"); break;
    case "tool-input-available": setTool("input-available", { input: chunk.input }); break;
    case "tool-output-available": setTool("output-available", { output: chunk.output }); break;
    case "tool-output-error":
    case "tool-input-error": setTool("output-error", { errorText: chunk.errorText }); break;
    case "tool-output-denied": setTool("output-denied"); break;
    case "tool-approval-request": setTool("approval-requested", { approval: { id: chunk.approvalId } }); break;
    case "reset-step": {
      const step = message.parts.findLastIndex((each) => each.type === "step-start");
      message.parts.length = step + 1;
      break;
    }
    case "start-step": message.parts.push({ type: "step-start" }); break;
    case "error": message.error = chunk.errorText; break;
    default: break;
  }
}

// A copy, for addChunk(). A stored message may lack what others have.
const whole = (message) => ({ ...message, parts: (message.parts ?? []).filter(isObject).map((part) => ({ ...part, type: part.type ?? "" })) });

// What is known of a chat, after a frame. `send` answers the server, `read` reads the frame's body.
export function takeFrame(chat, frame, send, read) {
  switch (frame.type) {
    case "cf_agent_chat_messages":
      return { ...chat, messages: (frame.messages ?? []).map(whole), greeted: true, live: chat.turn ? chat.live : null };
    case "cf_agent_message_updated":
      return { ...chat, messages: chat.messages.map((each) => (each.id === frame.message?.id ? whole(frame.message) : each)) };
    case "cf_agent_chat_clear":
      return { ...chat, messages: [], live: null, turn: null };
    case "cf_agent_stream_resuming":
      send({ type: "cf_agent_stream_resume_ack", id: frame.id });
      return { ...chat, greeted: true, turn: frame.id, live: { id: frame.id, role: "assistant", parts: [] } };
    case "cf_agent_stream_pending":
      return { ...chat, greeted: true, turn: frame.id };
    case "cf_agent_stream_resume_none":
      // "continuation-owned": an answer goes on, for another client.
      return frame.reason === "continuation-owned" ? { ...chat, greeted: true } : { ...chat, greeted: true, turn: null, live: null };
    case "cf_agent_use_chat_response": return takeAnswer(chat, frame, read);
    default: return chat;
  }
}

function takeAnswer(chat, frame, read) {
  const error = frame.error ? frame.body : chat.error;
  // The client that has asked gets no transcript afterwards: what has come is the message.
  if (frame.done) return { ...chat, error, turn: null, messages: shownMessages(chat), live: null };
  if (frame.error || !frame.body) return { ...chat, error };
  const last = chat.messages.at(-1);
  const begun = frame.continuation && last?.role === "assistant" ? last : { id: frame.id, role: "assistant", parts: [] };
  const live = whole(chat.live ?? begun);
  const chunk = jsonOf(frame.body, read);
  if (!isObject(chunk)) return { ...chat, error };
  addChunk(live, chunk);
  return { ...chat, error: live.error ?? error, turn: frame.id, live };
}

// The messages to show: an answer in progress takes the place of what is stored of it.
export const shownMessages = ({ messages, live }) => (live?.parts.length ? [...messages.filter((each) => each.id !== live.id), live] : messages);
