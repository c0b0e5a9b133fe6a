import Peers
import Protocols
import Testing

/// How the simulated car converts a tilt to motor speeds, including its sign error.
@Suite struct AutoTTCarDrivingTests {
  /// The table of the original's motor speeds for tilts, every row.
  @Test(arguments: [
    ("0.4", "0", "50.96 50.96"),
    ("0.4", "0.2", "52.93 21.68"),
    ("0.4", "-0.2", "21.68 52.93"),
    ("0", "0.5", "35.83 -35.83"),
    ("-0.4", "0", "-50.96 -50.96"),
    ("-0.4", "-0.0", "-50.96 -254.78"),
    ("-0.4", "-0.1", "-51.46 -241.23"),
    ("0.06", "0", "0.00 0.00"),
  ]) func `the motor speeds match the table`(_ roll: String, _ pitch: String, _ motors: String) throws {
    var host = try AutoTTCarHost.ready(driving: true)
    host.send("Gyro#$# \(roll); \(pitch); 0%^%\r\n")
    #expect(host.motors == motors)
    host.send("Stop#$#%^%\r\n")
    #expect(host.car.motors == .still && host.events.last == (motors == "0.00 0.00" ? "frame Stop" : "motors 0.00 0.00"))
  }

  @Test func `motor speeds are symmetric and limited`() throws {
    // Turning on the spot, the right angles, and the limits.
    #expect(CarWheels(roll: 0, pitch: 9).text == "100.00 -100.00")
    #expect(CarWheels(roll: 0, pitch: -9).text == "-100.00 100.00")
    #expect(CarWheels(roll: 9, pitch: 9).text == "100.00 0.00")
    #expect(CarWheels(roll: 9, pitch: -9).text == "0.00 100.00")
    #expect(CarWheels(roll: -9, pitch: 9).text == "0.00 -100.00")
    #expect(CarWheels(roll: 0, pitch: 0) == .still && CarWheels(roll: 0.061, pitch: 0).text == "0.00 0.00")
    #expect(CarWheels(roll: 0.0611, pitch: 0).text == "7.78 7.78")
    #expect(CarWheels(roll: .nan, pitch: 0) == .still && CarWheels(roll: 0, pitch: .nan) == .still)
    // The sides swap with the sign of pitch, where the sign error does not apply.
    for step in 0...900 {
      let (roll, pitch) = (Double(step % 30) / 20, Double(step / 30) / 20)
      let (one, other) = (CarWheels(roll: roll, pitch: pitch), CarWheels(roll: roll, pitch: -pitch))
      #expect(abs(one.left - other.right) < 1e-9 && abs(one.right - other.left) < 1e-9)
      #expect(max(abs(one.left), abs(one.right)) <= 100)
    }
  }
}
