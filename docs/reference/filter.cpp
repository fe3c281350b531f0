// Doxygen's input filter: prints a public header with its plain comments as documentation.
//
// A comment belongs to all declarations that follow it up to the next comment or empty line. A banner,
// `// ---- Shapes ----`, begins a group. In ops.h each op has a group of its own, which Doxygen makes a page
// of, and the rows of elementwise_table.h are written out. The caller's line, a last argument of most
// functions that nobody writes, is left out.
#include <cctype>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "elementwise.h"

namespace reference {
namespace {

std::string trimmed(const std::string& s) {
    const std::size_t first = s.find_first_not_of(" \t");
    return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(" \t") + 1 - first);
}

// Where a comment begins in a line of code; npos: nowhere.
std::size_t comment_in(const std::string& line) {
    bool quoted = false;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
        if (line[i] == '"' && (i == 0 || line[i - 1] != '\'') && (i == 0 || line[i - 1] != '\\'))
            quoted = !quoted;
        if (!quoted && line[i] == '/' && line[i + 1] == '/') return i;
    }
    return std::string::npos;
}

std::string escaped(const std::string& text) {
    std::string s;
    for (const char c : text) {
        if (std::string("\\@<>&#%\"$").find(c) != std::string::npos) s += '\\';
        s += c;
    }
    return s;
}

// Of the groups of headers; others have the name of the file.
const std::map<std::string, std::string> titles = {{"array.h", "Arrays"},
                                                   {"array_ops.h", "Arithmetic of arrays"},
                                                   {"checkpoint.h", "Checkpoints"},
                                                   {"dlpack.h", "DLPack"},
                                                   {"dtype.h", "Element types"},
                                                   {"error.h", "Errors"},
                                                   {"expr.h", "Expressions"},
                                                   {"function.h", "Functions"},
                                                   {"io.h", "Files"},
                                                   {"memory_plan.h", "Memory plans"},
                                                   {"ops.h", "Operations"},
                                                   {"packed.h", "Packed variables"},
                                                   {"precision.h", "Precision"},
                                                   {"train.h", "Training"}};

class Header {
  public:
    Header(std::string name, const std::string& text, std::string table)
        : name_(std::move(name)), table_(std::move(table)) {
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);) lines_.push_back(line);
    }

    void print() {
        std::size_t at = 0;
        std::cout << "/// @file\n";
        for (; at < lines_.size() && lines_[at].rfind("namespace bitale {", 0) != 0; ++at)
            std::cout << (lines_[at].rfind("//", 0) == 0 ? documentation({trimmed(lines_[at].substr(2))}, "")
                                                         : lines_[at] + "\n");
        group_ = name_.substr(0, name_.find('.'));
        const auto title = titles.find(name_);
        std::cout << "/// @defgroup " << group_ << " " << (title == titles.end() ? name_ : title->second)
                  << "\n\n";
        file_group_ = group_;
        std::size_t end = lines_.size();
        while (end > at && lines_[end - 1].rfind("}  // namespace", 0) != 0) --end;
        if (at == lines_.size()) return;
        std::cout << lines_[at] << "\n\n";
        scope(at + 1, end - 1, true);
        for (std::size_t k = end - 1; k < lines_.size(); ++k) std::cout << lines_[k] << "\n";
    }

  private:
    // The last comment. It goes on to the functions below, and from a type to a function that returns it.
    struct Comment {
        std::vector<std::string> lines;
        bool fresh = false;  // nothing was declared since
        std::string type;    // that was declared last; empty: a function
        bool covers(const std::string& function) const {
            return type.empty() || function.rfind(type + " ", 0) == 0;
        }
    };

    static bool banner(const std::string& comment) { return comment.rfind("---- ", 0) == 0; }

    // The declarations of a namespace or a class.
    void scope(std::size_t at, std::size_t end, bool is_namespace) {
        Comment comment;
        bool comment_ended = true;
        while (at < end) {
            const std::string line = trimmed(lines_[at]);
            if (line.rfind("//", 0) == 0) {
                if (comment_ended) comment = {{}, true, ""};
                comment_ended = false;
                std::string text = line.substr(2);
                if (!text.empty() && text[0] == ' ') text.erase(0, 1);
                ++at;
                if (is_namespace && banner(text)) {
                    begin_group(text.substr(5, text.find(" --", 5) - 5));
                    comment_ended = true;
                } else {
                    comment.lines.push_back(text);
                }
            } else if (line.empty()) {
                if (!comment_ended && is_namespace)  // about all that follows
                    std::cout << "/// @addtogroup " << group_ << "\n"
                              << documentation(comment.lines, "") << "\n";
                comment = {};
                comment_ended = true;
                std::cout << lines_[at++] << "\n";
            } else if (line[0] == '#') {
                preprocessor(line);
                ++at;
            } else if (line == "public:" || line == "private:" || line == "protected:") {
                std::cout << lines_[at++] << "\n";
                comment = {};
            } else {
                comment_ended = true;
                at = declaration(at, comment, is_namespace);
            }
        }
    }

    void begin_group(const std::string& title) {
        group_ = file_group_ + "_" + slug(title);
        std::cout << "/// @defgroup " << group_ << " " << title << "\n/// @ingroup " << file_group_ << "\n\n";
    }

    void preprocessor(const std::string& line) {
        if (line.find("elementwise_table.h") != std::string::npos)
            std::cout << elementwise_ops(table_, group_);
        else if (!std::regex_search(line, std::regex("^#(define|undef) BITALE_(UNARY|BINARY|TERNARY)")))
            std::cout << line << "\n";
    }

    // One declaration, which may have several lines; the place behind it.
    std::size_t declaration(std::size_t at, Comment& comment, bool is_namespace) {
        const std::size_t first = at;
        int depth = 0;
        std::string code, trailing;
        std::size_t opened = 0;  // the line with the first brace
        for (;; ++at) {
            std::string line = lines_.at(at);
            const std::size_t slashes = comment_in(line);
            if (slashes != std::string::npos) {
                const std::string remark = trimmed(line.substr(slashes + 2));
                if (depth == 0 && remark.rfind("NOLINT", 0) != 0 && trimmed(line.substr(0, slashes)) != "")
                    trailing += (trailing.empty() ? "" : " ") + remark;
                line = line.substr(0, slashes);
            }
            for (const char c : line) {
                if (c == '{' && depth == 0 && !opened) opened = at + 1;
                depth += (c == '(' || c == '{') - (c == ')' || c == '}');
            }
            code += line + "\n";
            const std::string bare = trimmed(line);
            if (depth == 0 && !bare.empty() &&
                (bare.back() == ';' || bare.back() == '}' || bare.rfind("BITALE_", 0) == 0))
                break;
        }
        const std::size_t behind = at + 1;
        const std::string start = trimmed(code);
        const bool is_class = std::regex_search(start, std::regex("^(class|struct) [^;(]*\\{"));
        const bool is_enum = start.rfind("enum ", 0) == 0;
        std::smatch named;
        const std::string type =
            std::regex_search(start, named, std::regex("^(?:class|struct) (\\w+)")) ? named[1].str() : "";
        if (std::regex_search(start, std::regex("^(class|struct|friend) [^({]*;"))) {
            std::cout << code;
            return behind;
        }
        std::vector<std::string> about;
        if (comment.fresh || (is_namespace && type.empty() && trailing.empty() && comment.covers(start)))
            about = comment.lines;
        comment.fresh = false;
        comment.type = type;
        if (!is_class && !is_enum && !trailing.empty()) {
            if (!about.empty()) about.push_back("");
            about.push_back(trailing);
        }
        const std::string indent(lines_[first].find_first_not_of(' '), ' ');
        std::string group = group_;
        std::smatch op;
        if (is_namespace && name_ == "ops.h" &&
            std::regex_search(start, op,
                              std::regex("^(?:Expr|TopK|Eigh|Zca|std::vector<Expr>) ([a-z_0-9]+)\\("))) {
            group = "op_" + op[1].str();
            if (defined_.insert(group).second)
                std::cout << "/// @defgroup " << group << " " << op[1] << "\n/// @ingroup " << group_
                          << "\n\n";
        }
        std::cout << documentation(about, indent);
        if (is_namespace) std::cout << "/// @ingroup " << group << "\n";
        if (is_class && opened && behind - first > 1) {
            for (std::size_t k = first; k < opened; ++k)
                std::cout << lines_[k].substr(0, comment_in(lines_[k])) << "\n";
            scope(opened, behind - 1, false);
            std::cout << lines_[behind - 1] << "\n";
        } else if (is_enum) {
            for (std::size_t k = first; k < behind; ++k)
                std::cout << std::regex_replace(lines_[k], std::regex("//"), "///<") << "\n";
        } else {
            static const std::regex hidden(",?\\s*Where (where|w) = Where::current\\(\\)");
            std::cout << std::regex_replace(code, hidden, "");
        }
        return behind;
    }

    std::string name_, table_, group_, file_group_;
    std::vector<std::string> lines_;
    std::set<std::string> defined_;
};

std::string text_of_file(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + " cannot be read");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string documentation(const std::vector<std::string>& lines, const std::string& indent) {
    std::string text;
    bool code = false;
    for (const std::string& line : lines) {
        const bool is_code = line.rfind("    ", 0) == 0;
        if (is_code != code) text += indent + (is_code ? "/// @code{.cpp}\n" : "/// @endcode\n");
        code = is_code;
        text += indent + "/// " + (code ? line.substr(4) : escaped(line)) + "\n";
    }
    return text + (code ? indent + "/// @endcode\n" : "");
}

}  // namespace reference

int main(int argc, char** argv) try {
    if (argc != 2) {
        std::cerr << "usage: reference_filter HEADER\n";
        return 2;
    }
    const std::string path = argv[1], folder = path.substr(0, path.rfind('/') + 1);
    reference::Header(path.substr(folder.size()), reference::text_of_file(path),
                      reference::text_of_file(folder + "elementwise_table.h"))
        .print();
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
