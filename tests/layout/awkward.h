// Text that quoting, CMake lists and variable references could damage. Embedded by a test, compiled by nobody.
#define QUOTES "a \"quoted\" word; another" ';' '"' '\\' '\n'
#define BRACKETS [a; b] [[c]] ]=] [=[ x[i][j] )" )BITALE" R"(raw)"
#define REFERENCES @PROJECT_NAME@ ${PROJECT_NAME} $ENV{HOME} $<CONFIG> \${x} %s %%
#define CONTINUED(a) \
    do { a; } while (0)
	// a tab before, spaces behind   
// umlauts and symbols: ä ö ü € 𝛼

#cmakedefine NOTHING
