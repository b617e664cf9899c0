// The frame around the places: where one is, and whether the server is there.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { leave, link, useWatched } from "./api.js";
import { Change, Command, Guard, html } from "./ui.js";
import { Overview } from "./overview.js";
import { Agent } from "./agent.js";
import { Waits } from "./waits.js";
import { Libraries } from "./libraries.js";
import { Log } from "./log.js";
import { Talk } from "./talk.js";

const PLACES = [
  { path: "overview", title: "Overview", place: Overview },
  { path: "agent", title: "Agents", place: Agent },
  { path: "waits", title: "Waits for you", place: Waits },
  { path: "libraries", title: "Libraries", place: Libraries },
  { path: "log", title: "Log", place: Log },
  { path: "talk", title: "Talk", place: Talk },
];

// "#/agent/Counter/a?tab=why": the place, the rest ["Counter", "a"] as it stands, and parameters.
function whereWeAre() {
  const [path, parameters] = location.hash.replace(/^#\/?/, "").split("?");
  const [place, ...rest] = path.split("/");
  return { place: PLACES.find((each) => each.path === place) ?? PLACES[0], rest, parameters: new URLSearchParams(parameters) };
}

function useTheme() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    window.dispatchEvent(new Event("themechange"));
  }, [theme]);
  const isDark = theme === "" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  return [isDark, () => setTheme(isDark ? "light" : "dark")];
}

function useKeys() {
  useEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
      const place = PLACES[Number(event.key) - 1];
      if (place) location.hash = `#/${place.path}`;
      if (event.key === "/") {
        const search = document.querySelector("[data-search]");
        if (search) {
          event.preventDefault();
          search.focus();
        } else {
          location.hash = "#/agent";
        }
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

const Over = ({ state }) => html`<main class="over">
  <h1>${state === "none" ? "There is no session in this tab" : "The session has ended"}</h1>
  <p>A session is of one tab, lasts twelve hours, and ends when the server restarts. Run this on the server's machine, and open the link that it prints:</p>
  <p><${Command} text="hearth console" /></p>
</main>`;

function App() {
  const [where, setWhere] = useState(whereWeAre());
  const [isDark, switchTheme] = useTheme();
  const state = useWatched(link);
  useKeys();
  useEffect(() => {
    const onHash = () => {
      setWhere(whereWeAre());
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", onHash);
    return () => window.removeEventListener("hashchange", onHash);
  }, []);
  useEffect(() => {
    document.title = `${where.place.title} · Hearth`;
  }, [where.place]);
  if (state === "over" || state === "none") return html`<${Over} state=${state} />`;
  const { place: Place, path } = where.place;
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/overview"><img src="/console/icon.svg" alt="" width="20" height="20" />Hearth</a>
      <nav aria-label="Places">
        ${PLACES.map((each, index) => html`<a href=${`#/${each.path}`} aria-current=${each.path === path ? "page" : undefined} title=${`Key ${index + 1}`}>${each.title}</a>`)}
      </nav>
      <div class="top-end">
        <button class="button small" onClick=${switchTheme} aria-label=${isDark ? "Use light colours" : "Use dark colours"}>${isDark ? "Light" : "Dark"}</button>
        <${Change} label="Leave" small run=${leave} />
      </div>
    </header>
    ${state === "away" && html`<p class="away" role="status">The server does not answer. What you see is from before; the page tries again by itself.</p>`}
    <main id="main" tabindex="-1"><${Guard} at=${location.hash}><${Place} key=${path} where=${where} /><//></main>
  `;
}

render(html`<${Guard}><${App} /><//>`, document.getElementById("root"));
