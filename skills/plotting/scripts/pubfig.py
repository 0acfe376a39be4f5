"""Figures of journal size and look, and the small things that astronomical plots need every time.

Import it from a script (see SKILL.md), or run it to draw a sample and see that the machine has what it needs:

    python3 pubfig.py out/sample
"""

import os
import sys

import matplotlib

matplotlib.use("Agg")  # Scripts run where there is no screen.
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "assets", "publication.mplstyle")

#: Widths in inches as the journals print them: single column, double column.
WIDTHS = {
    "aas": (3.5, 7.1),
    "mnras": (3.32, 6.97),
    "aa": (3.46, 7.09),
    "nature": (3.50, 7.20),
}

#: Okabe and Ito's colours, which people with colour-vision deficiency can tell apart.
COLORS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "orange": "#E69F00",
    "black": "#000000",
}

#: Markers and line styles to go with the colours, so that the figure survives a black-and-white printer.
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
LINES = ["-", "--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 3))]


def figure(columns="single", rows=1, cols=1, ratio=0.75, journal="aas", **kwargs):
    """A figure of one or two columns' width; `ratio` is the height of one panel over its width."""
    plt.style.use(STYLE)
    single, double = WIDTHS[journal]
    width = double if columns == "double" else single
    height = width / cols * ratio * rows
    return plt.subplots(rows, cols, figsize=(width, height), squeeze=True, **kwargs)


def residuals(columns="single", journal="aas", ratio=0.95):
    """Two panels for data with a model, and what is left: (figure, upper, lower)."""
    plt.style.use(STYLE)
    width = WIDTHS[journal][1 if columns == "double" else 0]
    fig, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(width, width * ratio), gridspec_kw={"height_ratios": [3, 1]}
    )
    engine = fig.get_layout_engine()
    if engine is not None:
        engine.set(h_pad=0, hspace=0)
    lower.axhline(0, color="0.5", lw=0.6, zorder=0)
    upper.tick_params(labelbottom=False)
    return fig, upper, lower


def magnitudes(ax, axis="y"):
    """Bright is up: turns an axis of magnitudes round, once."""
    low, high = ax.get_ylim() if axis == "y" else ax.get_xlim()
    if low < high:
        (ax.invert_yaxis if axis == "y" else ax.invert_xaxis)()


def upper_limits(ax, x, y, length=0.08, color=COLORS["black"]):
    """Upper limits as arrows towards the fainter side, which is down for fluxes and, once turned round, for magnitudes.

    `length` is a part of the axis' height. Call it when the limits of the axis are final.
    """
    to_axes = ax.transData.transform
    from_axes = ax.transData.inverted().transform
    height = ax.get_window_extent().height
    for one_x, one_y in zip(np.atleast_1d(x), np.atleast_1d(y)):
        start = to_axes((one_x, one_y))
        end = from_axes((start[0], start[1] - length * height))
        ax.annotate("", xy=end, xytext=(one_x, one_y), arrowprops={"arrowstyle": "-|>", "lw": 0.8, "color": color})
        ax.plot([one_x], [one_y], marker="_", ms=5, ls="none", color=color)


def panel_labels(axes, start="a", where=(0.04, 0.93)):
    """(a), (b), (c) … in the corner of each panel."""
    for number, ax in enumerate(np.ravel(axes)):
        label = f"({chr(ord(start) + number)})"
        ax.text(*where, label, transform=ax.transAxes, va="top", ha="left")


def stretch(image, low=1.0, high=99.5, softening=0.1):
    """An image from 0 to 1 by an asinh stretch between two percentiles; what is not finite stays so."""
    finite = image[np.isfinite(image)]
    if finite.size == 0:
        return np.full_like(image, np.nan, dtype=float)
    bottom, top = np.percentile(finite, [low, high])
    scaled = np.clip((image - bottom) / max(top - bottom, np.finfo(float).tiny), 0, 1)
    return np.arcsinh(scaled / softening) / np.arcsinh(1 / softening)


def scale_bar(ax, length, label, where=(0.08, 0.08), color="white"):
    """A bar of `length` in data units with its label: `scale_bar(ax, 60 / pixel_scale, "1 arcmin")`."""
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    x = left + where[0] * (right - left)
    y = bottom + where[1] * (top - bottom)
    ax.plot([x, x + length], [y, y], color=color, lw=1.5, solid_capstyle="butt")
    ax.text(x + length / 2, y + 0.02 * (top - bottom), label, color=color, ha="center", va="bottom", fontsize=7)


def save(fig, path, formats=("pdf", "png")):
    """Writes the figure at its printed size; answers with the paths."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    paths = [f"{path}.{ending}" for ending in formats]
    for one in paths:
        fig.savefig(one)
    plt.close(fig)
    return paths


def sample(path):
    """A light curve with a model, residuals and an upper limit."""
    random = np.random.default_rng(1)
    time = np.sort(random.uniform(0, 40, 45))
    model = 18.2 + 0.4 * np.sin(2 * np.pi * time / 11.3)
    error = random.uniform(0.03, 0.08, time.size)
    data = model + random.normal(0, error)
    fig, upper, lower = residuals()
    style = {"fmt": MARKERS[0], "color": COLORS["blue"], "lw": 0.7}
    upper.errorbar(time, data, yerr=error, label="$g$", **style)
    grid = np.linspace(0, 40, 400)
    upper.plot(grid, 18.2 + 0.4 * np.sin(2 * np.pi * grid / 11.3), color=COLORS["vermillion"], label="model")
    upper.set_ylabel("$g$ [AB mag]")
    magnitudes(upper)
    upper.legend()
    upper_limits(upper, [27.5], [18.1])
    lower.errorbar(time, data - model, yerr=error, **style)
    lower.set_ylabel(r"$\Delta g$")
    lower.set_xlabel("MJD $-$ 59000 [d]")
    magnitudes(lower)
    panel_labels([upper, lower])
    return save(fig, path)


if __name__ == "__main__":
    print("\n".join(sample(sys.argv[1] if len(sys.argv) > 1 else "sample")))
