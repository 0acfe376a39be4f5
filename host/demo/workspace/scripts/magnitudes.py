"""AB magnitudes from flux densities in microjansky."""

import csv
import math

ZERO_POINT = 23.9  # AB, for a flux density in microjansky


def magnitude(flux_ujy: float) -> float:
    return -2.5 * math.log10(flux_ujy) + ZERO_POINT


if __name__ == "__main__":
    with open("data/photometry.csv", newline="") as table:
        for row in csv.DictReader(table):
            print(row["mjd"], round(magnitude(float(row["flux_ujy"])), 3))
