// Lines that are exchanged in pairs.
constexpr constant bool X_NEIGHBOURS = false;
inline uint x_line(uint x) { return x ^ 1; }
