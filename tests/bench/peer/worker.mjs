// The peer: an agent of @cloudflare/ai-chat that asks the provider of chat_load.cpp, as its README
// prints it.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AIChatAgent } from "@cloudflare/ai-chat";
import { routeAgentRequest } from "agents";
import { convertToModelMessages, streamText } from "ai";

export class Assistant extends AIChatAgent {
  async onChatMessage(onFinish, options) {
    const provider = createOpenAICompatible({ name: "load", baseURL: this.env.PROVIDER });
    const result = streamText({
      model: provider("words"),
      messages: await convertToModelMessages(this.messages),
      abortSignal: options?.abortSignal,
      onFinish,
    });
    return result.toUIMessageStreamResponse();
  }
}

export default {
  fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("", { status: 404 }),
};
