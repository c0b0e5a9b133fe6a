// The request that is asked at the device's rate: page 0x01 of the battery controller in its two forms, a few parameters of the engine, or
// on the way there the question which parameters there are.

struct PageRequest: Equatable, Sendable {
  /// Hex digits as they go out, without the number of frames.
  let rawValue: String
  let target: Target
  /// Service and identifiers.
  let bytes: [UInt8]
  /// The parameters of service 01 it asks for, each with its number of bytes; empty for a page.
  let parameters: [Inquiry.Parameter]
  /// What a reply to it begins with.
  let echo: [UInt8]

  static let uds = PageRequest(page: [0x22, 0x01, 0x01])
  static let kwp = PageRequest(page: [0x21, 0x01])

  private init(page bytes: [UInt8]) {
    self.init(.battery, bytes, parameters: [], echo: [bytes[0] + 0x40] + bytes.dropFirst())
  }

  /// Which parameters are supported, from this one on: 0x00, 0x20, … 0xE0. Every controller answers.
  init(supportedFrom base: UInt8, on bus: VehicleBus) {
    self.init(bus.everybody, [0x01, base], parameters: [], echo: [0x41, base])
  }

  /// Parameters of one controller.
  init(_ parameters: [Inquiry.Parameter], of target: Target) {
    self.init(target, [0x01] + parameters.map(\.number), parameters: parameters, echo: [0x41])
  }

  private init(_ target: Target, _ bytes: [UInt8], parameters: [Inquiry.Parameter], echo: [UInt8]) {
    (self.target, self.bytes, self.parameters, self.echo) = (target, bytes, parameters, echo)
    rawValue = String(decoding: hexText(bytes), as: UTF8.self)
  }

  /// One of the pages, by its text.
  init?(rawValue: String) {
    guard let page = [Self.uds, .kwp].first(where: { $0.rawValue == rawValue }) else { return nil }
    self = page
  }

  var service: UInt8 { bytes[0] }
  /// It asks what there is, and holds no values.
  var isDiscovery: Bool { service == 0x01 && parameters.isEmpty }
}
