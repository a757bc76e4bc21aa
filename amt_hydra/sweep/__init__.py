"""Many runs in one go: points of a sweep, planned whole before the first of them starts."""
