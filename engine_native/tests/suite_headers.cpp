// Nothing: CMake compiles the suites' common headers along with it.
