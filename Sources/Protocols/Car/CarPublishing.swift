// Publishes single properties of a car. A value outside of its range is not published.

extension Effects {
  mutating func publish(_ signal: CarSignal, _ value: Value) {
    if let range = CarSignal.ranges[signal.rawValue], let number = value.number, !range.contains(number) {
      return withdraw(signal, "implausible value \(value.text) from the car")
    }
    publish(signal.rawValue, value)
  }

  mutating func withdraw(_ signal: CarSignal, _ reason: String) { withdraw(signal.rawValue, reason) }

  mutating func fail(command id: CommandID?, _ error: CommandError) {
    if let id { append(.complete(id, .failure(error))) }
  }

  mutating func refuse(command id: CommandID?, code: ErrorCode, _ message: String) { fail(command: id, .refused(code: code, message)) }

  mutating func succeed(command id: CommandID?, _ report: Report = Report()) {
    if let id { append(.complete(id, .success(report))) }
  }
}
