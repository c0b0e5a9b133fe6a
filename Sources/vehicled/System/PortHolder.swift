// Who listens on a TCP port that we want: its program and process where we may see them, else its user.
// Facts: proc(5), /proc/net/tcp: local address, state 0A is listening, user, inode.

import Glibc
import Protocols

enum PortHolder {
  /// `python3 (process 4711)`, `a program of user www-data`, or `another program`.
  static func words(_ port: Int) -> String {
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
      guard let bytes = try? Files.contents(of: table, limit: 4 << 20) else { continue }
      for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst() {
        let fields = line.split(separator: " ")
        guard fields.count > 9, fields[3] == "0A", let colon = fields[1].lastIndex(of: ":"),
          Int(fields[1][colon...].dropFirst(), radix: 16) == port
        else { continue }
        return program(holding: "socket:[\(fields[9])]") ?? user(uid_t(fields[7]) ?? 0)
      }
    }
    return "another program"
  }

  private static func program(holding socket: String) -> String? {
    for process in Files.list("/proc") where process.first?.isNumber == true {
      for descriptor in Files.list("/proc/\(process)/fd") {
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = readlink("/proc/\(process)/fd/\(descriptor)", &buffer, buffer.count)
        guard count > 0, String(decoding: buffer.prefix(count), as: UTF8.self) == socket else { continue }
        let name = (try? Files.contents(of: "/proc/\(process)/comm", limit: 64)).map {
          String(decoding: $0.prefix { $0 != 0x0A }, as: UTF8.self)
        }
        return "\(printable(name ?? "a program", limit: 40)) (process \(process))"
      }
    }
    return nil
  }

  private static func user(_ id: uid_t) -> String {
    guard let entry = getpwuid(id), let name = entry.pointee.pw_name else { return "a program of user \(id)" }
    return "a program of user \(String(cString: name))"
  }
}
