// Lists the CAN interfaces of the kernel, for `setup`.

import Glibc

enum CANInterfaces {
  /// ARPHRD_CAN of linux/if_arp.h.
  private static let type = "280"

  /// The interfaces in a directory such as /sys/class/net. Their kind is unknown: a car behind them can reply to requests, or be listened to.
  static func candidates(in folder: String = "/sys/class/net") -> [Candidate] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX)) { String(cString: $0) }
      }
      if !name.hasPrefix("."), firstLine(of: "\(folder)/\(name)/type") == type { names.append(name) }
    }
    return names.sorted().map { Candidate(transport: "can", address: $0) }
  }

  private static func firstLine(of path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 16)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    return String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
