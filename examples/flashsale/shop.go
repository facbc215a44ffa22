package main

import (
	"context"
	"database/sql"

	_ "github.com/ncruces/go-sqlite3/driver" // SQLite, without a C compiler
)

// A shop is the database: the stock, and the orders.
type shop struct{ db *sql.DB }

// open makes a database of one item in a file.
func open(ctx context.Context, file string, stock int) (*shop, error) {
	db, err := sql.Open("sqlite3", "file:"+file+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	s := &shop{db}
	for _, statement := range []string{
		`CREATE TABLE items (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL CHECK (stock >= 0), version INTEGER NOT NULL)`,
		`CREATE TABLE orders (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, customer INTEGER NOT NULL)`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			s.close()
			return nil, err
		}
	}
	if _, err := db.ExecContext(ctx, `INSERT INTO items VALUES (1, ?, 0)`, stock); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *shop) close() { _ = s.db.Close() }

// buy sells a piece to a customer, if there is one. It reads the stock and its version
// without a lock, and takes a piece only if the version is still the same: else
// somebody was faster, and it looks again.
func (s *shop) buy(ctx context.Context, customer int) (sold bool, err error) {
	for {
		var stock, version int
		if err := s.db.QueryRowContext(ctx, `SELECT stock, version FROM items WHERE id = 1`).Scan(&stock, &version); err != nil {
			return false, err
		}
		if stock == 0 {
			return false, nil
		}
		if sold, err := s.take(ctx, customer, version); sold || err != nil {
			return sold, err
		}
	}
}

// take takes a piece and writes the order, both or neither.
func (s *shop) take(ctx context.Context, customer, version int) (bool, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after Commit
	res, err := tx.ExecContext(ctx, `UPDATE items SET stock = stock - 1, version = version + 1 WHERE id = 1 AND version = ?`, version)
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (item, customer) VALUES (1, ?)`, customer); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// count tells how many orders there are, and how many pieces are left.
func (s *shop) count(ctx context.Context) (orders, left int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM orders), stock FROM items WHERE id = 1`).Scan(&orders, &left)
	return orders, left, err
}
