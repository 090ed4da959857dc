#include "tape.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace recorder {

Job job;

namespace {
constexpr std::size_t TAPE_LIMIT = 8u << 20;
std::string text, destination;
pid_t owner = 0;
}  // namespace

int Kernel::parameterBytes() const {
    int bytes = 0;
    for (const auto& [offset, size] : parameters) bytes = std::max(bytes, offset + size);
    return bytes;
}

void open(const std::string& path) {
    destination = path;
    text.clear();
    owner = getpid();
}

void line(const std::string& json) {
    text += json;
    text += '\n';
    if (text.size() > TAPE_LIMIT) {
        text.clear();
        violation("too_many_calls", "the seam", "more than 8 MiB of recorded calls");
    }
}

void close() {
    if (getpid() != owner) _exit(0);  // a process that the seam forked has nothing to say
    FILE* file = std::fopen(destination.c_str(), "w");
    if (!file) _exit(125);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
}

void violation(const char* reason, const char* call, const std::string& detail, std::uint64_t bytes) {
    text += "{\"op\":\"violation\",\"reason\":" + quoted(reason) + ",\"call\":" + quoted(call) +
            ",\"detail\":" + quoted(detail) + ",\"bytes\":" + std::to_string(bytes) + "}\n";
    close();
    _exit(0);
}

void failed(const char* kind, const std::string& what) {
    text += "{\"op\":\"failed\",\"kind\":" + quoted(kind) + ",\"what\":" + quoted(what.substr(0, 500)) + "}\n";
    close();
    _exit(0);
}

std::string quoted(const std::string& raw) {
    std::string result = "\"";
    for (unsigned char letter : raw) {
        if (letter == '"' || letter == '\\') result += '\\';
        result += letter < 0x20 || letter > 0x7e ? '?' : static_cast<char>(letter);
    }
    return result + '"';
}

std::string hex(const void* data, std::size_t bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string result;
    result.reserve(2 * bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        const unsigned char byte = static_cast<const unsigned char*>(data)[i];
        result += digits[byte >> 4];
        result += digits[byte & 15];
    }
    return result;
}

std::string numbers(const unsigned* values, int count) {
    std::string result = "[";
    for (int i = 0; i < count; ++i) result += (i ? "," : "") + std::to_string(values[i]);
    return result + "]";
}

}  // namespace recorder
