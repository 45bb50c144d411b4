"""How nodes agree, or fail to: stores that can be broken, and what judges them."""
