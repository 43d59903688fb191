"""The only room that touches raw gradients: Algorithm 1, its noise, its scales, its trainer."""
