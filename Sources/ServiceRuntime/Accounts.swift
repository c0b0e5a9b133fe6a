// Users and groups of this computer, by name and by ID. A lookup blocks: the name service (NSS) can query a directory on the network.
// Source: getpwnam_r(3), getgrnam_r(3), nsswitch.conf(5).

import Glibc

public enum Accounts {
  /// A query to the name service.
  public enum Query: Hashable, Sendable {
    /// The ID of a user. Digits are an ID unless they are the name of a user.
    case user(String)
    case group(String)
    case userName(UInt32)
    case groupName(UInt32)

    /// For messages, such as `group family`.
    public var label: String {
      switch self {
      case .user(let name): "user \(name)"
      case .group(let name): "group \(name)"
      case .userName(let number): "user \(number)"
      case .groupName(let number): "group \(number)"
      }
    }
  }

  public enum Answer: Equatable, Sendable {
    case number(UInt32)
    case name(String)
    /// There is no such user or group.
    case absent
    /// The lookup failed, for this reason.
    case failed(String)
  }

  public typealias Answers = [Query: Answer]

  /// The name of the user of this process. The first use blocks.
  public static let ownName: String = if case .name(let name) = resolve(.userName(geteuid())) { name } else { "user \(geteuid())" }

  /// Queries the name service. Blocks.
  public static func resolve(_ query: Query) -> Answer {
    switch query {
    case .user(let name):
      let answer = lookUp(passwd()) {
        getpwnam_r(name, $0, $1, $2, $3)
      } read: {
        .number($0.pw_uid)
      }
      return answer == .absent ? UInt32(name).map { .number($0) } ?? .absent : answer
    case .group(let name):
      return lookUp(group()) {
        getgrnam_r(name, $0, $1, $2, $3)
      } read: {
        .number($0.gr_gid)
      }
    case .userName(let number):
      return lookUp(passwd()) {
        getpwuid_r(number, $0, $1, $2, $3)
      } read: {
        .name(String(cString: $0.pw_name))
      }
    case .groupName(let number):
      return lookUp(group()) {
        getgrgid_r(number, $0, $1, $2, $3)
      } read: {
        .name(String(cString: $0.gr_name))
      }
    }
  }

  private typealias LookupFunction<Record> = (
    UnsafeMutablePointer<Record>, UnsafeMutablePointer<CChar>, Int, UnsafeMutablePointer<UnsafeMutablePointer<Record>?>
  ) -> CInt

  /// Makes a call with larger and larger buffers, because a group with thousands of members needs a large one.
  private static func lookUp<Record>(_ empty: Record, call: LookupFunction<Record>, read: (Record) -> Answer) -> Answer {
    var size = 1024
    while true {
      var record = empty
      var found: UnsafeMutablePointer<Record>?
      let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { buffer.deallocate() }
      let code = call(&record, buffer, size, &found)
      if found != nil { return read(record) }
      guard code == ERANGE, size < 16 << 20 else {
        // The error code for an unknown name depends on the NSS module.
        return [0, ENOENT, ESRCH].contains(code) ? .absent : .failed(errnoMessage(code))
      }
      size *= 4
    }
  }
}
