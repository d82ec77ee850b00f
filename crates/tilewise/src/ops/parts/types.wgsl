// The types of an element and of four, during the computation.

alias E = TYPE;
alias V = vec4<TYPE>;
