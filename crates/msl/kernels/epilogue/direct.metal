// The end of a mainloop that stores its result.
// needs: BIAS_ARGUMENTS BIAS_Format BIAS_VALUES C_ARGUMENTS C_Element Epilogue INLINE
//        RESIDUAL_ARGUMENTS RESIDUAL_Format RESIDUAL_VALUES Tile c_data params
// offers: END END_ARGUMENTS End

#define END_ARGUMENTS BIAS_ARGUMENTS RESIDUAL_ARGUMENTS C_ARGUMENTS
#define END End{Epilogue{&params, BIAS_Format{BIAS_VALUES}, RESIDUAL_Format{RESIDUAL_VALUES}, c_data}}

struct End {
    Epilogue epilogue;

    // One sum; those beyond the edge are dropped.
    INLINE void store(thread const Tile &tile, uint row, uint col, float sum) const thread {
        if (row < tile.row_end && col < epilogue.params->n) {
            const float y = epilogue.apply(tile.batch, tile.group, row, col, sum);
            epilogue.c[epilogue.index(tile.batch, row, col)] = C_Element(y);
        }
    }
};
