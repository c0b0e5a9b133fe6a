// The configuration of the `rc-car` kind: an RC car with a Raspberry Pi that listens on TCP, as driven by AutoTTApp. The app's documentation
// and the program in the car describe different protocols; the option `dialect` selects one of them.
// Source: task123/AutoTT and task123/AutoTTApp (as built), the app's README (documented).

extension Kind {
  /// RC cars that are driven by tilt.
  public static let rcCar = Kind(
    name: "rc-car",
    summary: "The AutoTT RC car, with a Raspberry Pi, driven by tilt",
    links: [LinkRole(schemes: ["tcp"], disconnectsUnresponsivePeer: false)],
    options: [
      Option(
        "dialect", ValueRule(.string, choices: CarDialect.allCases.map(\.rawValue)), default: .string(CarDialect.asBuilt.rawValue),
        help: "Protocol dialect: that of AutoTT's program (as-built), or of the app's README (documented)"),
      Option(
        "tilt-rate", ValueRule(.float, unit: "Hz", range: 5...100),
        help: "Setpoints per second; default: the rate that the car requests, usually 60"
      ),
      Option(
        "status-interval", ValueRule(.float, unit: "s", range: 0...3600), default: .float(30),
        help: "Interval between status requests while the car is not driven; 0: only on demand"),
      Option(
        "allow-messages", ValueRule(.bool), default: .bool(false),
        help: "Enable the action send-message; AutoTT's program ignores messages"),
    ]
  ) { setup throws(OptionError) in CarMachine(setup) }
}

/// The dialect of the car.
enum CarDialect: String, Sendable, CaseIterable {
  /// The protocol of the program in the car.
  case asBuilt = "as-built"
  /// The protocol in the app's README.
  case documented
}

/// The configuration of a car.
struct CarOptions: Sendable {
  /// The name of the device, for messages.
  let device: String
  let dialect: CarDialect
  /// The configured interval between setpoints; nil to use the interval that the car requests.
  let tiltInterval: Nanoseconds?
  /// The interval between status requests; nil if only the action `refresh` requests the status.
  let statusInterval: Nanoseconds?
  let allowsMessages: Bool
  /// The car's host and port; nil if the link's URL contains none.
  let endpoint: CarEndpoint?

  init(_ setup: Setup) {
    func number(_ name: String) -> Double? { setup.options[name]?.number.flatMap { $0.isFinite ? $0 : nil } }
    device = setup.device
    dialect = setup.options["dialect"] == .string(CarDialect.documented.rawValue) ? .documented : .asBuilt
    tiltInterval = number("tilt-rate").map { CarTiltPacer.interval(seconds: 1 / min(max($0, 5), 100)) }
    let seconds = min(max(number("status-interval") ?? 30, 0), 3600)
    // More than once per second would occupy the car's only receiving thread.
    statusInterval = seconds == 0 ? nil : max(Int64(seconds * 1e9), .second)
    allowsMessages = setup.options["allow-messages"] == .bool(true)
    endpoint = setup.links[.main].flatMap(CarEndpoint.init)
  }
}

/// The car's host and port, from the link's URL. The camera's server has the same host and the next port.
struct CarEndpoint: Sendable, Equatable {
  /// The host as written in a URL: an IPv6 address is in brackets, and the percent sign before its zone is encoded.
  let host: String
  /// The port of the camera's server.
  let videoPort: Int

  /// Parses `tcp:HOST:PORT`; nil for other links, and for port 65535, which has no next port.
  init?(_ url: String) {
    guard url.hasPrefix("tcp:"), let colon = url.lastIndex(of: ":") else { return nil }
    let start = url.index(url.startIndex, offsetBy: 4)
    guard start < colon, let port = Int(url[url.index(after: colon)...]), (1..<65535).contains(port) else { return nil }
    let host = url[start..<colon]
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    guard host.utf8.allSatisfy({ (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "/") }), isBracketed || !host.contains(":") else {
      return nil
    }
    self.host = String(host)
    videoPort = port + 1
  }

  /// The link URL of the camera's server.
  var videoLink: String { "tcp:\(authority)" }
  /// Host and port of the camera's server, for the Host header of HTTP requests.
  var authority: String { "\(host):\(videoPort)" }
  /// The URL of the car's own web page.
  var page: String { "http://\(authority)/" }
  /// The URL of the camera stream.
  var video: String { "http://\(authority)\(Self.videoPath)" }
  static let videoPath = "/video_feed"
}
