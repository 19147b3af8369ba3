// Writes the times marked data-ago as a person would, "3 days ago", with the exact time on hover.
for (const time of document.querySelectorAll("time[data-ago]")) {
  const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
  const units = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
  if (!Number.isNaN(seconds)) {
    time.title = time.textContent;
    time.textContent = new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.round(seconds / size), unit);
  }
}
