// A poll request and the properties in its response, before their positions in the schema are known.

struct RequestLayout {
  private(set) var request: PollRequest
  private(set) var rows: [(parameter: UInt8?, dataRow: DataRow)]
  /// Whether its properties are custom signals, which take precedence over other properties of the same name.
  let isCustom: Bool

  init(_ request: PollRequest, _ rows: [DataRow], isCustom: Bool = false) {
    (self.request, self.rows, self.isCustom) = (request, rows.map { (nil, $0) }, isCustom)
  }

  /// Creates one request for these PIDs of service 01.
  init(
    _ parameters: [StandardParameter], of target: Target, period: Nanoseconds, usesDeviceRate: Bool = false, priority: Priority = .normal
  ) {
    let lengths = parameters.map { PollRequest.Parameter(number: $0.number, length: $0.length) }
    request = PollRequest(
      target, [0x01] + parameters.map(\.number), parameters: lengths, period: period, usesDeviceRate: usesDeviceRate, priority: priority)
    rows = parameters.flatMap { parameter in parameter.rows.map { (parameter.number, $0) } }
    isCustom = false
  }

  /// The requests of custom signals, or of the signals of a profile. Signals of one response share a request, which is polled with the
  /// shortest of their periods.
  static func custom(_ signals: [CustomSignal], on bus: OBDProtocol, isCustom: Bool = true) -> [RequestLayout] {
    var layouts: [RequestLayout] = []
    for signal in signals {
      let target = bus.target(of: signal)
      if let index = layouts.firstIndex(where: { $0.request.target == target && $0.request.request == signal.request.bytes }) {
        layouts[index].request.shorten(to: signal.period)
        layouts[index].rows.append((nil, signal.row))
      } else {
        let request = PollRequest(target, signal.request.bytes, responsePrefix: signal.request.responsePrefix, period: signal.period)
        layouts.append(RequestLayout(request, [signal.row], isCustom: isCustom))
      }
    }
    return layouts
  }

  /// The data records of an electric Hyundai or Kia other than the BMS data.
  static func records(of family: VehicleFamily) -> [RequestLayout] {
    family.records.map { record in
      let target = Target(CANIdentifier(record.header), reply: CANIdentifier(record.reply))
      return RequestLayout(PollRequest(target, record.request, period: record.period), record.rows)
    }
  }
}

extension OBDProtocol {
  /// The target of a custom signal. The functional header and the header of the engine ECU, which are the defaults, are replaced by those
  /// of the protocol.
  fileprivate func target(of signal: CustomSignal) -> Target {
    if signal.header == .functional, signal.addressBytes == .normal { return allECUs }
    if signal.header == .engine, is29Bit { return Target(.engine29Bit) }
    return Target(signal.header, reply: signal.reply, signal.addressBytes)
  }
}
