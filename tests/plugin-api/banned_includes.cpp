// What the SDK may not bring into a plugin. That it compiles is the test.
#include <hearth/agent.hpp>

#ifdef _GLIBCXX_IOSTREAM
#error "hearth/agent.hpp includes <iostream>, which has static constructors"
#endif
#ifdef _GLIBCXX_REGEX
#error "hearth/agent.hpp includes <regex>, whose unique symbols keep a library from being unloaded"
#endif
