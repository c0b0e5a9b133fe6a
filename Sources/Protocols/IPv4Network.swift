// IPv4 networks in CIDR notation, such as 192.168.4.0/24: parsing and comparison, without DNS look-ups.

/// An IPv4 network: the addresses with a common prefix.
public struct IPv4Network: Sendable, Hashable, CustomStringConvertible {
  private let address: UInt32
  private let bits: Int

  /// Parses `192.168.4.0/24`, or a single address.
  public init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let invalid = ValueError("\"\(text)\" is not an IPv4 network; write one, as in 192.168.4.0/24")
    guard parts.count <= 2, let address = Self.address(parts[0]) else { throw invalid }
    guard parts.count == 2 else {
      (self.address, bits) = (address, 32)
      return
    }
    guard let bits = Int(parts[1]), (0...32).contains(bits), parts[1].utf8.allSatisfy(isDigit) else { throw invalid }
    (self.address, self.bits) = (address & Self.mask(bits), bits)
  }

  /// Whether a dotted-quad address is in this network. False for any other text.
  public func contains(_ text: String) -> Bool {
    Self.address(text[...]).map { $0 & Self.mask(bits) == address } ?? false
  }

  public var description: String {
    let bytes = stride(from: 24, through: 0, by: -8).map { shift in String((address >> shift) & 0xFF) }
    return "\(bytes.joined(separator: "."))/\(bits)"
  }

  private static func mask(_ bits: Int) -> UInt32 { bits == 0 ? 0 : .max << UInt32(32 - bits) }

  private static func address(_ text: Substring) -> UInt32? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    return parts.reduce(UInt32?.some(0)) { sum, part in
      guard let sum, (1...3).contains(part.utf8.count), part.utf8.allSatisfy(isDigit), let byte = UInt8(part) else { return nil }
      return sum << 8 | UInt32(byte)
    }
  }
}
