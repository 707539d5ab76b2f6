"""Code blocks are found with their lines, languages and reasons."""

import pytest

from support.fences import Fence, fences

PAGE = """# Page
```sh
make sim
```
    indented
<!-- not run: it needs a GPU -->
```text
a

b
```
<!-- not run: too far above -->

```
```
"""


def test_blocks_of_a_page():
    assert fences(PAGE) == [
        Fence(3, "sh", "make sim\n"),
        Fence(8, "text", "a\n\nb\n", "it needs a GPU"),
        Fence(15, "", ""),
    ]


def test_a_block_must_end():
    with pytest.raises(ValueError, match=r"^line 2: the block does not end$"):
        fences("text\n```sh\nmake sim\n")
