// The content of the fast request, which is polled at the device's rate: BMS data record 0x01 over UDS or KWP, or a few PIDs of one ECU; at
// its own period, a data record of a profile; during detection and liveness checks, the supported PIDs.

struct FastRequest: Equatable, Sendable {
  /// The hex digits as sent, without the frame count.
  let rawValue: String
  let target: Target
  /// Service and identifiers.
  let bytes: [UInt8]
  /// The PIDs of service 01, each with its length; empty for a data record and for the supported PIDs.
  let parameters: [PollRequest.Parameter]
  /// The first bytes of a response.
  let responsePrefix: [UInt8]
  /// Whether it reads the BMS data record.
  let isBMSRecord: Bool

  /// The BMS data record over UDS.
  static let bmsUDS = FastRequest(record: [0x22, 0x01, 0x01])
  /// The BMS data record over KWP, in older vehicles.
  static let bmsKWP = FastRequest(record: [0x21, 0x01])

  private init(record bytes: [UInt8]) {
    self.init(.bms, bytes, parameters: [], responsePrefix: [bytes[0] + 0x40] + bytes.dropFirst(), isBMSRecord: true)
  }

  /// Requests a data record of a profile.
  init(_ request: PollRequest) { self.init(request.target, request.request, parameters: [], responsePrefix: request.responsePrefix) }

  /// Requests the bitmap of the supported PIDs after `base`, which is 0x00, 0x20, … or 0xE0, from all ECUs.
  init(supportedFrom base: UInt8, on bus: OBDProtocol) {
    self.init(bus.allECUs, [0x01, base], parameters: [], responsePrefix: [0x41, base])
  }

  /// Requests PIDs of one ECU.
  init(_ parameters: [PollRequest.Parameter], of target: Target) {
    self.init(target, [0x01] + parameters.map(\.number), parameters: parameters, responsePrefix: [0x41])
  }

  private init(
    _ target: Target, _ bytes: [UInt8], parameters: [PollRequest.Parameter], responsePrefix: [UInt8], isBMSRecord: Bool = false
  ) {
    (self.target, self.bytes, self.parameters, self.responsePrefix) = (target, bytes, parameters, responsePrefix)
    self.isBMSRecord = isBMSRecord
    rawValue = String(decoding: hexText(bytes), as: UTF8.self)
  }

  /// The request for the BMS data record with these hex digits; nil for any other text.
  init?(rawValue: String) {
    guard let request = [Self.bmsUDS, .bmsKWP].first(where: { $0.rawValue == rawValue }) else { return nil }
    self = request
  }

  var service: UInt8 { bytes[0] }
  /// Whether it requests the supported PIDs.
  var isDiscovery: Bool { service == 0x01 && parameters.isEmpty }
}
