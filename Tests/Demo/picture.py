"""Makes docs/watch.svg: `vehiclectl watch` of simulated devices, drawn by the real programs in a pseudo terminal.

    picture.py DIRECTORY-OF-THE-PROGRAMS FILE.svg [SECONDS]"""
import html
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Peers"))
from screen import Terminal  # noqa: E402

COLUMNS, ROWS = 112, 34
WIDTH, HEIGHT = 8.4, 18  # of a cell in pixels
FOREGROUND, BACKGROUND = "#d8dee9", "#14181f"
COLOURS = {"default": FOREGROUND, "green": "#8fce7a", "brown": "#e5b567", "red": "#ef6b73", "cyan": "#67b7d1", "blue": "#7aa2f7", "brightblack": "#7a8494"}
DEVICES = (("ev", "obd", ("obd",), "rate = 20"), ("board", "longboard", ("vesc",), 'protocol = "vesc"'),
           ("torq", "longboard", ("longboard",), 'protocol = "elcomm"'), ("golf", "obd", ("obd", "--car", "petrol"), "rate = 10"),
           ("rover", "rc-car", ("rc-car",), ""))


def start(programs, directory):
    """The simulators and the daemon; returns their processes."""
    processes, configuration = [], ""
    for name, kind, arguments, options in DEVICES:
        simulator = subprocess.Popen([f"{programs}/vehiclesim", *arguments, "--on", "tcp:127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                                     stderr=subprocess.DEVNULL)
        processes.append(simulator)
        configuration += f'[device.{name}]\nkind = "{kind}"\nlink = "{simulator.stdout.readline().strip()}"\n{options}\n'
    with open(f"{directory}/vehicled.toml", "w") as file:
        file.write(configuration)
    with open(f"{directory}/daemon.err", "w") as errors:
        processes.append(subprocess.Popen([f"{programs}/vehicled", "--config", f"{directory}/vehicled.toml", "--socket", f"{directory}/socket",
                                           "--state", f"{directory}/state"], stderr=errors))
    while not os.path.exists(f"{directory}/socket"):
        if processes[-1].poll() is not None:
            sys.exit(open(f"{directory}/daemon.err").read())
        time.sleep(0.05)
    return processes


def svg(screen):
    """The screen as an image: one text element for each run of cells of the same look."""
    made = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {screen.columns * WIDTH + 24:.0f} {screen.lines * HEIGHT + 24:.0f}" '
            f'font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="14">',
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>']
    for y in range(screen.lines):
        row, x = screen.buffer[y], 0
        while x < screen.columns:
            look = (row[x].fg, row[x].bold, row[x].reverse)
            end = x + 1
            while end < screen.columns and (row[end].fg, row[end].bold, row[end].reverse) == look:
                end += 1
            text = "".join(row[column].data for column in range(x, end))
            if text.strip():
                left = len(text) - len(text.lstrip())
                shown = text.strip()
                colour = COLOURS.get(look[0], FOREGROUND)
                weight = ' font-weight="bold"' if look[1] else ""
                made.append(f'<text x="{12 + (x + left) * WIDTH:.1f}" y="{12 + y * HEIGHT + 14:.1f}" fill="{colour}"{weight} xml:space="preserve" '
                            f'textLength="{len(shown) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs">{html.escape(shown)}</text>')
            x = end
    return "\n".join(made + ["</svg>", ""])


def main():
    programs, path = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 65
    with tempfile.TemporaryDirectory() as directory:
        processes = start(programs, directory)
        try:
            time.sleep(3)
            terminal = Terminal([f"{programs}/vehiclectl", "--socket", f"{directory}/socket", "--color", "always", "watch"], COLUMNS, ROWS)
            terminal.read(seconds)
            with open(path, "w", encoding="utf-8") as file:
                file.write(svg(terminal.screen))
            print("\n".join(terminal.lines()))
            terminal.end()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


if __name__ == "__main__":
    main()
