// The IANA time zone of this computer.

import Glibc

enum LocalZone {
  /// The name, such as `Europe/Berlin`, from $TZ or the target of /etc/localtime; UTC if neither contains one.
  static func current() -> String {
    name(environment: getenv("TZ").map { String(cString: $0) }, link: target(of: "/etc/localtime"))
  }

  static func name(environment: String?, link: String?) -> String {
    if let environment, let name = name(ofFile: environment.hasPrefix(":") ? String(environment.dropFirst()) : environment) { return name }
    return link.flatMap { name(ofFile: $0) } ?? "UTC"
  }

  /// The zone name from a path below zoneinfo, or from a plain name. A POSIX rule such as `CET-1CEST` has none.
  private static func name(ofFile path: String) -> String? {
    var name = path[...]
    if let start = path.split(separator: "/").firstIndex(of: "zoneinfo") {
      name = path.split(separator: "/")[(start + 1)...].joined(separator: "/")[...]
      for folder in ["posix/", "right/"] where name.hasPrefix(folder) { name = name.dropFirst(folder.count) }
    }
    let isPlain = name.first?.isLetter == true && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/_-+".contains($0)) }
    return isPlain && (name.contains("/") || name == "UTC" || name == "GMT" || !name.contains { $0.isNumber }) ? String(name) : nil
  }

  private static func target(of link: String) -> String? {
    var path = [CChar](repeating: 0, count: 4096)
    let count = readlink(link, &path, path.count)
    return count > 0 ? String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
  }
}
