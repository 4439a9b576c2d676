// headers.hpp is what this is for.
