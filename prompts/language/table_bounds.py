"""Which ranges do the classes of a classification have, and to which belongs a figure on their border?"""

import re
from collections.abc import Sequence

from prompts.language.table_bands import band_of
from prompts.language.table_plan import Band


def bands_of(classes: Sequence[tuple[str, str]]) -> tuple[Band, ...]:
    """The named ranges of a classification; one that does not tell its range is left out.

    Where two classes meet, a figure on the border belongs to the one that names it ("0 and below").
    """
    bands = [(band, wording) for name, wording in classes if (band := band_of(wording, name))]
    names_its_end = [
        re.search(r"及|或|and (?:below|above)|or (?:less|more)|equal|等于", wording) for _, wording in bands
    ]
    ends = {
        end
        for (band, _), named in zip(bands, names_its_end, strict=True)
        if named
        for end, inside in ((band.low, band.low_in), (band.high, band.high_in))
        if end is not None and inside
    }
    return tuple(
        band
        if named
        else band.model_copy(
            update={
                "low_in": band.low_in and band.low not in ends,
                "high_in": band.high_in and band.high not in ends,
            }
        )
        for (band, _), named in zip(bands, names_its_end, strict=True)
    )
