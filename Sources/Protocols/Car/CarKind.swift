// The `car` kind as the configuration knows it: an RC car with a Raspberry Pi in it that listens on TCP, as AutoTTApp drives
// it. The app's own notes and the program that runs in the car differ; which of the two is meant is the dialect.
// Facts: task123/AutoTT and task123/AutoTTApp (as built), the app's README (documented).

extension Kind {
  /// RC cars that are driven by tilt.
  public static let car = Kind(
    name: "car",
    summary: "An RC car with a Raspberry Pi in it, driven by tilt as AutoTTApp does",
    links: [LinkRole(schemes: ["tcp"], givesUp: false)],
    options: [
      Option(
        "dialect", ValueRule(.string, choices: CarDialect.allCases.map(\.rawValue)), default: .string(CarDialect.asBuilt.rawValue),
        help: "Whether the car speaks as AutoTT's program was built or as the app's README says"),
      Option(
        "tilt-rate", ValueRule(.float, unit: "Hz", range: 5...100),
        help: "Set-points a second, whatever the car asks for; usually it asks for 60"
      ),
      Option(
        "status-interval", ValueRule(.float, unit: "s", range: 0...3600), default: .float(30),
        help: "How often the car is asked for its status while nobody drives; 0 only on request"),
      Option(
        "allow-messages", ValueRule(.bool), default: .bool(false),
        help: "Let send-message send; the car as built has no receiver for messages"),
    ]
  ) { setup throws(OptionError) in CarMachine(setup) }
}

/// How the car speaks.
enum CarDialect: String, Sendable, CaseIterable {
  /// As the program in the car does.
  case asBuilt = "as-built"
  /// As the README of the app says.
  case documented
}

/// What the configuration says of a car.
struct CarOptions: Sendable {
  var dialect: CarDialect
  /// The interval between set-points in place of the one that the car asks for.
  var tiltInterval: Nanoseconds?
  /// nil: the status is asked for on request only.
  var statusInterval: Nanoseconds?
  var allowsMessages: Bool
  /// Where the car is; nil: the link does not tell.
  var place: CarPlace?

  init(_ setup: Setup) {
    func number(_ name: String) -> Double? { setup.options[name]?.number.flatMap { $0.isFinite ? $0 : nil } }
    dialect = setup.options["dialect"] == .string(CarDialect.documented.rawValue) ? .documented : .asBuilt
    tiltInterval = number("tilt-rate").map { CarPace.interval(seconds: 1 / min(max($0, 5), 100)) }
    let seconds = min(max(number("status-interval") ?? 30, 0), 3600)
    // Faster than once a second would keep the car's only receiving thread busy.
    statusInterval = seconds == 0 ? nil : max(Int64(seconds * 1e9), .second)
    allowsMessages = setup.options["allow-messages"] == .bool(true)
    place = setup.links[.main].flatMap(CarPlace.init)
  }
}

/// The car's host and port, out of the link's URL: the camera's server stands on the same host, one port on.
struct CarPlace: Sendable, Equatable {
  /// As the URL has it: IPv6 in brackets, a zone with its percent sign encoded.
  var host: String
  /// Of the camera's server.
  var videoPort: Int

  /// Reads `tcp:HOST:PORT`; nil where the link is something else, or leaves no port for the camera.
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

  var link: String { "tcp:\(authority)" }
  /// As an HTTP request's Host has it.
  var authority: String { "\(host):\(videoPort)" }
  var page: String { "http://\(authority)/" }
  var video: String { "http://\(authority)\(Self.videoPath)" }
  static let videoPath = "/video_feed"
}
