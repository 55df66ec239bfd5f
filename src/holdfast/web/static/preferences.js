// The user's preferences: the theme (in a cookie, so that the server renders it without a flash) and the time zone.

import { zoneChanged } from "./times.js";

const YEAR = 31536000;

export function startPreferences(redress) {
  const theme = document.querySelector("[data-choose-theme]");
  if (theme) {
    theme.value = document.documentElement.dataset.theme || "system";
    theme.addEventListener("change", () => {
      document.cookie = `holdfast_theme=${theme.value}; path=/; max-age=${YEAR}; samesite=lax`;
      if (theme.value === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme.value;
      document.dispatchEvent(new Event("themechange"));
    });
  }
  const zone = document.querySelector("[data-choose-zone]");
  if (zone) {
    const local = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const names = Intl.supportedValuesOf ? Intl.supportedValuesOf("timeZone") : [];
    zone.querySelector('option[value="local"]').textContent = `Local (${local})`;
    for (const name of names) zone.append(new Option(name.replaceAll("_", " "), name));
    zone.value = localStorage.getItem("holdfast.zone") ?? "UTC";
    if (!zone.value) zone.value = "UTC";
    zone.addEventListener("change", () => {
      localStorage.setItem("holdfast.zone", zone.value);
      zoneChanged();
      redress();
      document.dispatchEvent(new Event("themechange"));
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("themechange")),
  );
}
