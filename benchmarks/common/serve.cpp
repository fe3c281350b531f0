// The loop over requests.
#include "common/serve.h"

#include <exception>
#include <iostream>
#include <string>

namespace bench {

int serve(const std::function<Json(const Json& request)>& answer) {
    for (std::string line; std::getline(std::cin, line);) {
        Json reply;
        try {
            reply = answer(Json::parse(line));
        } catch (const std::exception& error) {
            reply = {{"error", error.what()}};
        }
        std::cout << reply.dump() << std::endl;  // flushed: the driver waits for it
    }
    return 0;
}

}  // namespace bench
