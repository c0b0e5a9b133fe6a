// The program that listens on a TCP address and port: its name and PID if this user can read them in /proc, otherwise its user.
// Source: proc(5). In /proc/net/tcp field 1 is the local address, 3 the state (0A: listening), 7 the user, 9 the inode.

import Glibc
import Protocols
import ServiceRuntime

enum PortHolder {
  /// `python3 (process 4711)`, `a program of user www-data`, or `another program`.
  static func description(of port: Int, at host: String) -> String {
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
      guard let bytes = try? Files.contents(of: table, limit: 4 << 20) else { continue }
      for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst() {
        let fields = line.split(separator: " ")
        guard fields.count > 9, fields[3] == "0A", let colon = fields[1].lastIndex(of: ":"),
          Int(fields[1][colon...].dropFirst(), radix: 16) == port, conflicts(fields[1][..<colon], with: host)
        else { continue }
        return program(holding: "socket:[\(fields[9])]") ?? user(uid_t(fields[7]) ?? 0)
      }
    }
    return "another program"
  }

  /// Whether a listener on this address, in the kernel's notation, conflicts with a listener on the IPv4 address `host`: the addresses
  /// are equal, or one of them is the wildcard. An IPv6 socket can include IPv4 addresses (`::`, `::ffff:127.0.0.1`).
  private static func conflicts(_ address: Substring, with host: String) -> Bool {
    var hostAddress = in_addr()
    guard inet_pton(AF_INET, host, &hostAddress) == 1, let last = UInt32(address.suffix(8), radix: 16) else { return true }
    let isIPv4 = address.count == 8 || address.dropLast(8).hasSuffix("0000" + mappedPrefix)
    let isWildcard = address.allSatisfy { $0 == "0" }
    return isWildcard || isIPv4 && (last == hostAddress.s_addr || hostAddress.s_addr == 0 || last == 0)
  }

  /// The third word of an IPv4-mapped IPv6 address, 0000FFFF, in the kernel's notation.
  private static let mappedPrefix = UInt32(bigEndian: 0xFFFF) == 0xFFFF ? "0000FFFF" : "FFFF0000"

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
    if case .name(let name) = Accounts.resolve(.userName(id)) { "a program of user \(name)" } else { "a program of user \(id)" }
  }
}
